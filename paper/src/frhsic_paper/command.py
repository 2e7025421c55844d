"""`frhsic reproduce`: run studies from the paper, and studies of open questions, by name."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Studies, or all. Without names, lists the studies.")
    ] = None,
    protocol: Annotated[
        Literal["published", "corrected", "both"], typer.Option(help="Protocol of the run.")
    ] = "corrected",
    phase: Annotated[
        Literal["train", "measure", "all"],
        typer.Option(help="Train (best on a GPU), measure trained models (on a CPU), or both."),
    ] = "all",
    device: Annotated[str, typer.Option(help="Device for training: auto, cpu or cuda.")] = "auto",
    out: Annotated[Path, typer.Option(help="Directory of the records.")] = Path("paper/results"),
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="Use only this real dataset. May be repeated."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Fewer epochs, for a quick look.")
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Fewer splits or seeds.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of processes (default: all cores) or, on a GPU, of studies (default: 1).",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Dask scheduler whose workers train and measure, such as tcp://10.0.0.1:8786."
        ),
    ] = None,
    docs: Annotated[
        bool,
        typer.Option(
            "--docs", help="Run nothing; write pages, tables and figures from the records."
        ),
    ] = False,
    docs_to: Annotated[Path, typer.Option(help="Directory of the pages.")] = Path("docs"),
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="With --docs, replace pages that were written from other records."
        ),
    ] = False,
) -> None:
    """Reproduce studies from the paper under either protocol. Records are written to OUT, one
    Parquet file per study.

    Records are written as they are computed: an interrupted run continues where it stopped, and
    `reproduce all` runs whatever is missing. OUT/log/reproduce.log contains every line with its
    time, and the progress of long training runs. Only one run at a time can write to OUT.
    """
    from joblib import cpu_count, effective_n_jobs
    from rich.console import Console

    from frhsic._tensors import resolve_device
    from frhsic.datasets.catalogue import entry
    from frhsic.distributed import cluster
    from frhsic_paper.crossed.rows import OTHER
    from frhsic_paper.options import Options
    from frhsic_paper.protocol import PROTOCOLS
    from frhsic_paper.studies import STUDIES
    from frhsic_paper.study import run, select_studies, train_side_by_side

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 160  # a pipe or a file has no width
    chosen = select_studies(
        STUDIES, names or []
    )  # raises an error for an unknown name before anything is run
    if docs:
        from frhsic_paper.page import write

        for path in write(out, docs_to, overwrite=overwrite):
            console.print(f"wrote {path}", markup=False, soft_wrap=True)
        return
    if not chosen:
        for study in select_studies(STUDIES, ["all"]):
            console.print(f"{study.name:22} {study.about}")
        return
    lines: list[str] = []

    def told(text: str) -> None:
        lines.append(text)
        console.print(f"  {text}", markup=False)

    on_cpu = resolve_device(device).type == "cpu"
    options = Options(
        folder := out if epochs is None and repeats is None else out / "quick",
        device,
        tuple(one if one in OTHER else entry(one).name for one in dataset) if dataset else None,
        epochs,
        repeats,
        (workers if on_cpu else None) or cpu_count(),
        told,
        folder / "log" / "reproduce.log",
        None if on_cpu else 1,
    )
    started = time.perf_counter()
    options.out.mkdir(parents=True, exist_ok=True)
    with (
        lock_folder(options.out),
        _workers_stopped(),
        cluster(scheduler) if scheduler else contextlib.nullcontext(),
    ):
        if scheduler is not None:  # each worker trains on its own device
            options = replace(options, workers=effective_n_jobs(None), trainers=None)
        remove_unfinished(options.out)
        protocols = [one for one in PROTOCOLS.values() if protocol in ("both", one.name)]
        if not on_cpu and (workers or 1) > 1 and phase != "measure":
            train_side_by_side(chosen, protocols, options, workers or 1)
        for one in protocols:
            for study in chosen:
                at = time.perf_counter()
                lines.clear()
                options.note(f"{one.name} {study.name}")
                try:
                    with console.status(f"{one.name} {study.name}"):
                        run(study, one, options, phase)
                except KeyboardInterrupt:
                    raise KeyboardInterrupt(
                        "interrupted; run the same command again to continue."
                    ) from None
                done = (
                    f"{time.perf_counter() - at:.1f} s"
                    if lines
                    else "nothing to do; its records are complete"
                )
                console.print(f"{one.name} {study.name}: {done}")
    console.print(
        f"in total {time.perf_counter() - started:.1f} s; records in {options.out}", markup=False
    )


@contextlib.contextmanager
def _workers_stopped() -> Iterator[None]:
    """Stop the worker processes if the run ends early or is killed, so that they don't keep
    training models whose results would be lost.
    """
    from joblib import parallel_config
    from joblib._parallel_backends import LokyBackend
    from joblib.externals.loky import get_reusable_executor

    class Watching(LokyBackend):  # type: ignore[misc]  # joblib has no types
        def configure(self, *arguments: Any, **options: Any) -> Any:
            watch = {"initializer": _end_with, "initargs": (os.getpid(),)}
            return super().configure(*arguments, **options, **watch)

    try:
        with parallel_config(Watching()):
            yield
    except BaseException:
        get_reusable_executor(reuse=True).shutdown(wait=False, kill_workers=True)
        raise


def _end_with(parent: int) -> None:
    """End this process soon after its parent ends, however that happens."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder, so that only one process can write to it; raise an error if another process
    holds the lock.

    The operating system releases the lock when the process ends, however that happens. On systems
    without such locks, nothing is locked.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f"another process is writing to {str(folder)!r}. Wait until it is done, or choose"
                " another folder."
            ) from error
        yield
    finally:
        os.close(handle)


def remove_unfinished(folder: Path) -> None:
    """Remove the temporary files that killed processes left in a folder and its subfolders. Call it
    while holding the lock.
    """
    for path in folder.rglob(".*.part"):
        if re.fullmatch(r"\.[0-9a-f]{32}\.part", path.name):  # temporary files of frhsic._files
            path.unlink(missing_ok=True)
