"""Plans of small programs: steps, units, money, errors, layouts, pages."""

from __future__ import annotations

import json

import pytest

import torch_neuronx
from planner import programs
from python_process import output_of
from torch_neuronx.planner import Plan, PlanError, mark_step, plan, sweep
from torch_neuronx.planner.__main__ import main
from torch_neuronx.planner.page import plan_page


@pytest.fixture
def write(tmp_path):
    def to_file(text: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(text)
        return str(path)

    return to_file


def test_a_training_program(write):
    found = plan(write(programs.TRAINING), steps=3)
    (result,) = found.results
    assert (result.found_by, result.unit, result.units) == ("optimizer", "tokens", 4 * 32)
    assert 0 < result.low_seconds < result.step_seconds < result.high_seconds
    weights = 4 * (100 * 64 + 64 * 100 + 100)
    assert result.hbm_by_kind["parameters"] == pytest.approx(weights, abs=1024)
    assert result.hbm_by_kind["optimizer"] == pytest.approx(2 * weights, rel=0.1)
    assert result.fits
    assert any("program.py:" in row["python_line"] for row in result.alive_at_peak)
    assert result.usd_per_million_units == pytest.approx(
        1e6 * result.usd_per_hour / 3600 / result.units_per_second
    )


def test_an_inference_program_steps_by_its_calls(write):
    found = plan(write(programs.INFERENCE), ["16"])
    (result,) = found.results
    assert (result.found_by, result.unit, result.units) == ("module call", "samples", 16)
    assert result.step_seconds > 0


def test_marked_steps_win(write):
    (result,) = plan(write(programs.MARKED)).results
    assert (result.found_by, result.unit, result.units) == ("marked", "audio seconds", 30)


def test_arguments_given_by_name_count(write):
    (result,) = plan(write(programs.KEYWORDS)).results
    assert (result.found_by, result.unit, result.units) == ("optimizer", "tokens", 4 * 32)


def test_a_step_without_tensors_counts_as_itself(write):
    (result,) = plan(write(programs.NO_TENSORS)).results
    assert (result.unit, result.units) == ("steps", 1)
    assert result.units_per_second == pytest.approx(1 / result.step_seconds)


def test_several_instances_and_gpus(write):
    found = plan(
        write(programs.INFERENCE), instances=["trn2.3xlarge", "trn1.2xlarge"], gpus=["g6e.xlarge"]
    )
    assert [result.instance for result in found.results] == ["trn2.3xlarge", "trn1.2xlarge"]
    (gpu,) = found.gpus
    assert (gpu.instance, gpu.num_gpus) == ("g6e.xlarge", 1)
    assert 0 < gpu.step_seconds < found.results[0].step_seconds


def test_compiled_software_starts_fewer_things(write):
    script = write(programs.TRAINING)
    eager = plan(script, gpus=()).results[0]
    compiled = plan(script, software="compiled", gpus=()).results[0]
    assert compiled.engine_seconds["launch"] < 0.2 * eager.engine_seconds["launch"]
    assert compiled.hbm_peak_bytes == eager.hbm_peak_bytes


def test_what_does_not_fit_is_planned_and_said(write):
    (result,) = plan(write(programs.SHARDED), ["1"], gpus=()).results
    assert not result.fits
    assert result.hbm_peak_bytes > 32 * 2**30
    assert "DOES NOT FIT" in str(plan(write(programs.SHARDED), ["1"], gpus=()))


def test_a_sweep_ranks_layouts_that_fit(write):
    layouts = sweep(write(programs.SHARDED), ["{tp}"], {"tp": [1, 2, 4]}, world_size=4, gpus=())
    assert [layout.fits for layout in layouts] == [True, True, False]
    assert layouts[-1].values == {"tp": 1, "dp": 4}
    rates = [layout.result.units_per_second for layout in layouts if layout.fits]
    assert rates == sorted(rates, reverse=True)


def test_a_sweep_of_nothing_possible(write):
    with pytest.raises(PlanError, match="No combination"):
        sweep(write(programs.SHARDED), ["{tp}"], {"tp": [3]}, world_size=4)


def test_arguments_that_name_no_axis(write):
    with pytest.raises(PlanError, match="no axis"):
        sweep(write(programs.SHARDED), ["{ep}"], {"tp": [1]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (programs.FAILING, "KeyError: 'no such thing'"),
        (programs.IDLE, "called no module on neuron"),
        (programs.KEYWORDS.replace("neuron", "cpu"), "called no module on neuron"),
    ],
)
def test_a_program_that_cannot_be_planned(write, text, message):
    with pytest.raises(PlanError, match=message):
        plan(write(text))


def test_a_value_that_nobody_supplied(write):
    with pytest.raises(PlanError, match=r"DryValueError.*program\.py:14"):
        plan(write(programs.TRAINING), value=None)


def test_wrong_requests(tmp_path, write):
    with pytest.raises(PlanError, match="There is no program"):
        plan(tmp_path / "nowhere.py")
    with pytest.raises(PlanError, match="from 0 to 3"):
        plan(write(programs.IDLE), world_size=4, rank=4)
    with pytest.raises(PlanError, match="0 steps shows none"):
        plan(write(programs.IDLE), steps=0)
    with pytest.raises(ValueError, match=r"Did you mean 'trn2\.3xlarge'"):
        plan(write(programs.IDLE), instances=["trn2.3xlarg"])


@pytest.mark.parametrize(("tp", "pp"), [(3, 1), (4, 4), (0, 1)])
def test_groups_that_do_not_divide_the_ranks(write, capsys, tp, pp):
    arguments = ["--world-size", "8", "--tp", str(tp), "--pp", str(pp), write(programs.IDLE)]
    assert main(arguments) == 2
    assert f"8 ranks do not divide into groups of tp {tp} times pp {pp}" in capsys.readouterr().err


def test_a_program_that_does_not_end(write):
    with pytest.raises(PlanError, match="did not end within"):
        plan(write("while True: pass"), timeout_seconds=8)


def test_json_comes_back(write):
    found = plan(write(programs.MARKED))
    assert Plan.from_json(found.to_json()) == found


def test_the_page_shows_the_numbers_and_escapes(write):
    found = plan(write(programs.MARKED), ["<script>"])
    page = plan_page(found)
    assert "audio seconds" in page
    assert "&lt;script&gt;" in page
    assert "<script>" not in page


def test_the_command(write, tmp_path, capsys):
    target = tmp_path / "plan.json"
    assert main(["--json", str(target), write(programs.MARKED)]) == 0
    assert "audio seconds/s" in capsys.readouterr().out
    assert json.loads(target.read_text())["results"][0]["unit"] == "audio seconds"
    assert main(["--instance", "trn9", write(programs.MARKED)]) == 2
    assert "There is no instance 'trn9'" in capsys.readouterr().err
    assert main(["--sweep", "tp", write(programs.MARKED)]) == 2
    assert "is not NAME=VALUE" in capsys.readouterr().err
    assert main([write(programs.FAILING)]) == 1


def test_neuron_explorer_starts_it(write):
    out = output_of(
        "import sys; from neuron_explorer.cli import main; sys.exit(main(['plan', "
        f"{write(programs.MARKED)!r}]))"
    )
    assert "audio seconds/s" in out


def test_marks_outside_a_plan_do_nothing():
    assert torch_neuronx.mark_step is mark_step
    assert mark_step(3, "images") is None
    with pytest.raises(ValueError, match="does more than none"):
        mark_step(0)
