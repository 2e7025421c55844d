"""Draw pictures as SVG text without scripts: lines with bands, above bars that show numbers of
people.

Colors are set as attributes, for notebooks; the style sheet of a report overrides these colors by
class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from frhsic.formatting import figure, format_setting, format_value

# Width of a letter of a name on a phone, where letters are widest.
LETTER = 11
COLOURS = {"before": "#8f8877", "after": "#0d5c68"}


@dataclass(frozen=True)
class Line:
    """A line through points, by default with a band from `low` to `high`."""

    kind: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class Frame:
    """The frame of a picture: its ranges, axis names and size.

    Attributes
    ----------
    x
        Range of the horizontal axis.
    y
        Range of the vertical axis.
    names
        Names of the two axes, and a description for screen readers.
    width
        Width in SVG units.
    height
        Height in SVG units.
    small
        Whether to omit the names of the axes and most numbers.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    names: tuple[str, str, str]
    width: int = 720
    height: int = 420
    small: bool = False

    def svg(
        self,
        lines: Iterable[Line],
        *,
        bars: Iterable[tuple[float, float, float]] = (),
        dots: Iterable[tuple[float, float]] = (),
        level: tuple[float, str] | None = None,
        marks: Iterable[tuple[str, float, float, str]] = (),
        neutral: bool = False,
        tips: Iterable[tuple[float, float, str]] = (),
    ) -> str:
        """Return the picture.

        Parameters
        ----------
        lines
            Lines to draw, from back to front.
        bars
            Left end, right end and height of each bar.
        dots
            Points that are not connected by a line.
        level
            Position and name of a horizontal line.
        marks
            Points to mark with a ring and a name, each with the kind of line that the point is on.
        neutral
            Whether rings are gray instead of a warning color.
        tips
            Left and right ends of ranges on the x-axis, each with its tooltip.
        """
        top, left, right = (6, 30, 4) if self.small else (28, 62, 12)
        labels, power = self._labels()
        if not self.small:
            left = max(left, 6 + LETTER * max(map(len, labels.values()), default=0))
        floor = self.height - (18 if self.small else 44)
        bars = list(bars)
        strip = 0.16 * floor if bars else 0.0
        base = floor - strip - (6 if bars else 0)
        x = _scale(self.x, (left, self.width - right))
        y = _scale(self.y, (base, top))
        parts = [*self._axes(x, y, left, right, floor, labels, power)]
        tallest = max((bar[2] for bar in bars), default=1.0) or 1.0
        for start, end, size in bars:
            a, b = (x(min(max(value, self.x[0]), self.x[1])) for value in (start, end))
            tall = strip * size / tallest
            if b > a and tall > 0:
                parts.append(
                    f'<rect class="bars" fill="#d8d2c5" x="{a:.1f}" y="{floor - tall:.1f}"'
                    f' width="{max(b - a - 1, 0.5):.1f}" height="{tall:.1f}"/>'
                )
        lines = list(lines)
        dots = list(dots)
        name = []
        if level is not None and self.y[0] <= level[0] <= self.y[1]:
            at = y(level[0])
            parts.append(
                f'<path class="level" stroke="currentColor" stroke-dasharray="3 3" opacity=".6"'
                f' d="M{left} {at:.1f}H{self.width - right}"/>'
            )
            if not self.small:
                near = [(x(c), y(d)) for c, d in dots]
                for line in lines:
                    near += _along([(x(c), y(d)) for c, d in zip(line.x, line.y)])
                wide = LETTER * len(level[1])
                starts = {"end": self.width - right - wide, "start": left}
                places = [
                    (_covered(starts[side], at + down, wide, near), down, side)
                    for down in (-5, 17)
                    for side in starts
                ]
                _, down, side = min(places, key=lambda place: place[0])
                a, b = starts[side], at + down
                parts.append(_text(a + wide if side == "end" else a, b, level[1], "halo", side))
                name = _along([(a, b - 3), (a + wide, b - 3)])
        parts += [_line_svg(line, x, y) for line in lines]
        for a, b in dots:
            if self.x[0] <= a <= self.x[1] and self.y[0] <= b <= self.y[1]:
                parts.append(
                    f'<circle class="actual" fill="#8a3b7c"'
                    f' cx="{x(a):.1f}" cy="{y(b):.1f}" r="{1.6 if self.small else 4}"/>'
                )
        for kind, a, b, text in () if self.small else marks:
            near = [(x(c), y(d)) for c, d in dots] + name
            for line in lines:
                if line.kind in ("before", kind):
                    near += _along([(x(c), y(d)) for c, d in zip(line.x, line.y)])
            look = f"{kind} neutral" if neutral else kind
            ring = _mark(x(a), y(b), text, near, (left, self.width, floor))
            parts.append(f'<g class="{look}">{ring}</g>')
        for start, end, text in tips:
            a, b = (x(min(max(value, self.x[0]), self.x[1])) for value in (start, end))
            parts.append(
                f'<rect class="tip" fill="none" pointer-events="all" x="{a:.1f}" y="{top}"'
                f' width="{max(b - a, 1):.1f}" height="{floor - top:.1f}">'
                f"<title>{escape(text)}</title></rect>"
            )
        box = f"0 0 {self.width} {self.height}"
        return (
            f'<svg viewBox="{box}" role="img" aria-label="{escape(self.names[2])}"'
            f' font-family="sans-serif" font-size="13" fill="currentColor">{"".join(parts)}</svg>'
        )

    def _labels(self) -> tuple[dict[float, str], str]:
        """Return the labels of the vertical axis and, if they are very small or very large, their
        unit, such as “10⁻⁶” or “millions”.
        """
        values = ticks(*self.y, 2 if self.small else 5)
        largest = max(map(abs, values), default=0.0)
        if largest == 0 or 1e-4 <= largest < 1e6:
            return {tick: format_setting(tick) for tick in values}, ""
        if 1e6 <= largest < 1e9:
            return {tick: format_setting(tick / 1e6) for tick in values}, "millions"
        unit = 10.0 ** math.floor(math.log10(largest))
        return {tick: format_setting(tick / unit) for tick in values}, figure(unit)[4:]

    def _axes(
        self,
        x: Callable[[float], float],
        y: Callable[[float], float],
        left: int,
        right: int,
        floor: float,
        labels: Mapping[float, str],
        power: str,
    ) -> Iterable[str]:
        for tick, label in labels.items():
            yield (
                f'<path class="grid" stroke="#e3dfd6" d="M{left} {y(tick):.1f}'
                f'H{self.width - right}"/>'
            )
            yield _text(left - 6, y(tick) + 4, label, "", "end")
        yield f'<path class="axis" stroke="#c9c3b6" d="M{left} {floor:.1f}H{self.width - right}"/>'
        for tick in ticks(*self.x, 3 if self.small else 6):
            yield _text(
                x(tick), floor + (14 if self.small else 18), format_value(tick), "", "middle"
            )
        if self.small and power:
            yield _text(left, 14, f"in {power}", "", "start")
        if not self.small:
            yield _text(0, 14, self.names[1] + (f", in {power}" if power else ""), "name", "start")
            yield _text(self.width - right, floor + 39, self.names[0], "name", "end")


def _mark(
    a: float,
    b: float,
    text: str,
    near: Sequence[tuple[float, float]],
    box: tuple[float, float, float],
) -> str:
    """Return a ring at a point, with its name placed where it covers the fewest nearby points;
    `box` contains the left, right and lower edges of the picture.
    """
    wide = LETTER * len(text)

    def covered(place: tuple[float, str]) -> int:
        down, side = place
        left = a - wide if side == "end" else a
        if left < box[0] or left + wide > box[1] or not 28 < b + down < box[2]:
            return len(near) + 1
        return _covered(left, b + down, wide, near)

    sides = ("end", "start") if 2 * a > box[1] else ("start", "end")
    places = [(down, side) for down in (29, -17, 40, -28) for side in sides]
    down, side = min(places, key=covered)
    lead = ""
    if down in (40, -28):  # farther away than the width of the ring
        start, end = (b + 9, b + down - 13) if down > 0 else (b - 9, b + down + 4)
        lead = f'<path class="mark" stroke="#93390b" d="M{a:.1f} {start:.1f}V{end:.1f}"/>'
    return (
        f'{lead}<circle class="mark" fill="none" stroke="#93390b" stroke-width="2.5" cx="{a:.1f}"'
        f' cy="{b:.1f}" r="9"/>{_text(a, b + down, text, "halo marked", side)}'
    )


def _covered(left: float, base: float, wide: float, near: Sequence[tuple[float, float]]) -> int:
    """Return how many points a text covers."""
    return sum(left - 6 <= a <= left + wide + 6 and base - 16 <= b <= base + 8 for a, b in near)


def _along(corners: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return points on the line through the corners, twenty per segment."""
    return [
        (a + i / 20 * (c - a), b + i / 20 * (d - b))
        for (a, b), (c, d) in pairwise(corners)
        for i in range(21)
    ]


def _line_svg(line: Line, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    def path(values: Iterable[float], places: Iterable[float]) -> str:
        return "L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in zip(places, values))

    colour = COLOURS.get(line.kind, COLOURS["after"])
    text = f'<g class="{line.kind}">'
    if len(line.low):
        back = path([*line.low][::-1], [*line.x][::-1])
        text += f'<path class="band" fill="{colour}" opacity=".15" d="M{path(line.high, line.x)}'
        text += f'L{back}Z"/>'
    dashed = ' stroke-dasharray="6 4"' if line.kind == "before" else ""
    return (
        f'{text}<path class="line" fill="none" stroke="{colour}" stroke-width="2.4"{dashed}'
        f' d="M{path(line.y, line.x)}"/></g>'
    )


def _text(a: float, b: float, text: str, kind: str, anchor: str) -> str:
    return (
        f'<text class="{kind}" x="{a:.1f}" y="{b:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _scale(values: tuple[float, float], pixels: tuple[float, float]) -> Callable[[float], float]:
    slope = (pixels[1] - pixels[0]) / ((values[1] - values[0]) or 1.0)
    return lambda value: pixels[0] + (value - values[0]) * slope


def ticks(low: float, high: float, count: int) -> list[float]:
    """Return about `count` round numbers from low to high.

    Examples
    --------
    >>> ticks(0.02, 0.5, 5), ticks(18, 82, 6)
    ([0.1, 0.2, 0.3, 0.4, 0.5], [20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0])
    """
    if not high > low:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(size for size in (1, 2, 5, 10) if raw <= 1.5 * size * power)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def padded_range(low: float, high: float, share: float = 0.06) -> tuple[float, float]:
    """Return a range widened at both ends by a share of its width."""
    pad = share * (high - low or abs(high) or 1.0)
    return low - pad, high + pad


def tradeoff_svg(
    points: Sequence[tuple[float, float]],
    names: tuple[str, str],
    *,
    dots: Sequence[tuple[float, float]] = (),
    chosen: tuple[float, float] | None = None,
) -> str:
    """Return an SVG plot of performance against a gap: a line through the trade-offs, the chosen
    trade-off, and other points as dots.

    Examples
    --------
    >>> tradeoff_svg([(0.1, 0.5), (0.0, 0.6)], ("gap", "log loss")).count('<path class="line"')
    1
    """
    gaps, values = zip(*points, *dots)
    frame = Frame(
        padded_range(min(gaps), max(gaps)),
        padded_range(min(values), max(values)),
        (*names, f"{names[1]}, {names[0]}"),
        height=300,
    )
    line = Line("after", *zip(*points))
    marks = [] if chosen is None else [("after", *chosen, "chosen")]
    return frame.svg([line], dots=[*points, *dots], marks=marks)


def curve_svg(
    line: Line, overall: float, names: tuple[str, str], *, width: int = 720, height: int = 260
) -> str:
    """Return an SVG plot of a line with its band and the overall mean."""
    every = [*line.y, *line.low, *line.high, overall]
    box = (line.x[0], line.x[-1]), padded_range(min(every), max(every))
    frame = Frame(*box, (*names, f"{names[1]}, {names[0]}"), width, height)
    return frame.svg([line], level=(overall, ""))


def card(lines: Iterable[str], svg: str = "") -> str:
    """Return HTML for a notebook: sentences, of which the first is bold, above a picture.

    Examples
    --------
    >>> card(["a < b", "c"])
    '<div style="max-width: 44em"><b>a &lt; b</b><br>c</div>'
    """
    first, *others = map(escape, lines)
    text = "<br>".join([f"<b>{first}</b>", *others])
    return f'<div style="max-width: 44em">{text}{svg}</div>'
