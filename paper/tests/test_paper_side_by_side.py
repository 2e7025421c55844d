"""Studies that are trained at the same time."""

from collections import Counter
from functools import partial

from joblib import parallel_config

from frhsic_paper import records
from frhsic_paper.options import Options
from frhsic_paper.protocol import CORRECTED, PROTOCOLS
from frhsic_paper.side_by_side import tasks, train_side_by_side
from frhsic_paper.steps import Training
from frhsic_paper.studies import STUDIES
from frhsic_paper.study import named, run
from paper_samples import toy_dataset


def test_every_grid_is_a_part_of_one_task_and_running_times_of_none():
    for protocol in PROTOCOLS.values():
        runs = [study for study in named(STUDIES, ["all"]) if study.published or not protocol.printed]
        wanted = {id(step) for study in runs for step in study.train if isinstance(step, Training)}
        by_name = {study.name: study for study in STUDIES}
        given = Counter(id(by_name[name].train[step]) for _, name, steps in tasks(runs, [protocol]) for step in steps)
        assert given == Counter(wanted)
    assert "runtime" not in {name for _, name, _ in tasks(STUDIES, PROTOCOLS.values())}


def test_studies_trained_at_a_time_have_the_records_of_those_trained_in_turn(tmp_path, monkeypatch):
    monkeypatch.setattr("frhsic_paper.grid.load_dataset", partial(toy_dataset, n=1500))
    studies = named(STUDIES, ["weight-selection", "bound"])
    together, in_turn = (
        Options(tmp_path / name, "cpu", ("crime",), epochs=1, repeats=1) for name in ("together", "turn")
    )
    with parallel_config("threading"):  # processes take seconds to start
        train_side_by_side(studies, [CORRECTED], together, processes=2)
    for study in studies:
        run(study, CORRECTED, in_turn, "train")
    for study in studies:
        a, b = (
            [records.content(r) for r in records.read(options.file(study.name, CORRECTED))]
            for options in (together, in_turn)
        )
        assert a == b
        assert a
