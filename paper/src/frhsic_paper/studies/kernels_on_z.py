"""HSIC with every kernel on the representation."""

from __future__ import annotations

from functools import partial

from frhsic.kernels import Gaussian, InverseMultiquadric, Kernel, Laplacian, Linear
from frhsic.penalties import HSIC
from frhsic_paper.comparisons import tables_of_variants
from frhsic_paper.grid import OWN_KERNEL, Grid, Method, held_out, own_penalty
from frhsic_paper.protocol import PAPER_WEIGHTS, Protocol
from frhsic_paper.steps import Training
from frhsic_paper.study import Study


def grid(protocol: Protocol) -> Grid:
    """Return HSIC with each kernel on the representation, and with the head in the kernel."""
    kernels: dict[str, Kernel] = {
        "Gaussian": Gaussian(1.0),
        "Gaussian, half": Gaussian(0.5),
        "Laplacian": Laplacian(1.0),
        "IMQ": InverseMultiquadric(1.0),
        "linear": Linear(),
        "linear + Gaussian": Linear() + Gaussian(1.0),
    }
    methods = (
        *(
            Method(name, partial(HSIC, 10 * kernel, head_weight=0.0, scale_z="standardized"))
            for name, kernel in kernels.items()
        ),
        Method("head alone", partial(HSIC, 0 * Linear())),
        Method("head, standardised", partial(HSIC, 0 * Linear(), standardize_scores=True)),
        Method("head + Gaussian", partial(HSIC, Gaussian(1.0), scale_z="normalized")),
        Method("head + linear + Gaussian", partial(HSIC, OWN_KERNEL, scale_z="standardized")),
        Method("head + linear + Gaussian, whitened", own_penalty),
    )
    return Grid("kernels-on-z", ("crime", "compas"), methods, PAPER_WEIGHTS, 5, held_out(protocol))


STUDY = Study(
    name="kernels-on-z",
    about="HSIC: every kernel on Z",
    title="HSIC: every kernel on the representation",
    words="The same statistic with other kernels on Z, and with the head's output in the kernel.",
    train=(Training(grid),),
    tables=tables_of_variants("kernels-on-z"),
    published=False,
)
