"""What counts as a reward, case by case."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from argo_harbor.model.record import RejectedReward
from argo_harbor.runner.rewards import MAX_BYTES, MAX_KEYS, Reading, choose, read_rewards


def read(folder: Path, **files: str) -> Reading:
    for name, text in files.items():
        (folder / f"reward.{name}").write_text(text)
    return read_rewards(folder)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1.0), ("0.25\n", 0.25), (" -3e2 ", -300.0), ("0", 0.0), ("1_000", 1000.0)],
)
def test_a_number_in_reward_txt_is_the_reward(tmp_path: Path, text: str, value: float) -> None:
    assert read(tmp_path, txt=text) == Reading({"reward": value})


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "one", "True", "1 2", "{}", "1e999"])
def test_what_is_no_finite_number_is_invalid(tmp_path: Path, text: str) -> None:
    reading = read(tmp_path, txt=text)
    assert (reading.rewards, reading.problem) == (None, "reward_invalid")
    assert "reward.txt holds" in reading.detail


@pytest.mark.parametrize("files", [{}, {"txt": ""}, {"txt": " \n"}, {"json": ""}, {"json": "{}"}])
def test_nothing_written_is_missing_and_no_zero(tmp_path: Path, files: dict[str, str]) -> None:
    reading = read(tmp_path, **files)
    assert (reading.rewards, reading.problem) == (None, "reward_missing")


def test_reward_json_wins_even_when_it_is_broken(tmp_path: Path) -> None:
    assert read(tmp_path, txt="1", json='{"a": 1, "b": 0.5}').rewards == {"a": 1.0, "b": 0.5}
    assert read(tmp_path, txt="1", json="[1]").problem == "reward_invalid"


@pytest.mark.parametrize("text", ["[1]", "1", '"1"', "null", "{", "[" * 100_000, '{"reward": tru}'])
def test_reward_json_must_be_an_object(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, json=text).problem == "reward_invalid"


@pytest.mark.parametrize(
    "value", ["true", "false", "NaN", "Infinity", "1e999", '"1"', "null", "[1]", "{}", "1" + "0" * 400]
)
def test_a_value_that_is_no_finite_number_is_rejected_by_its_key(tmp_path: Path, value: str) -> None:
    reading = read(tmp_path, json=f'{{"reward": {value}, "other": 1}}')
    assert reading.rewards == {"other": 1.0}
    assert [entry.key for entry in reading.rejected] == ["reward"]
    assert choose(reading, "reward").problem == "reward_invalid"


def test_rejected_alone_is_invalid_and_names_the_entry(tmp_path: Path) -> None:
    reading = read(tmp_path, json='{"reward": true}')
    assert reading == Reading(
        None,
        "reward_invalid",
        "'reward': a boolean is no number",
        (RejectedReward(key="reward", reason="a boolean is no number"),),
    )


@pytest.mark.parametrize("key", ["", "k" * 256, "a\\nb", "reward.pass@3", "\\ud800"])
def test_odd_keys_are_rejected(tmp_path: Path, key: str) -> None:
    reading = read(tmp_path, json=f'{{"{key}": 1, "reward": 1}}')
    assert reading.rewards == {"reward": 1.0}
    assert len(reading.rejected) == 1


def test_a_key_that_only_looks_computed_stays(tmp_path: Path) -> None:
    assert read(tmp_path, json='{".pass@3": 1, "x.pass@k": 2}').rewards == {".pass@3": 1.0, "x.pass@k": 2.0}


def test_size_is_bounded(tmp_path: Path) -> None:
    many = ",".join(f'"{number}": 1' for number in range(MAX_KEYS + 1))
    assert read(tmp_path, json=f"{{{many}}}").problem == "reward_invalid"
    assert read(tmp_path, json=" " * MAX_BYTES + "{}").problem == "reward_invalid"


def test_bytes_that_are_no_text_are_invalid(tmp_path: Path) -> None:
    (tmp_path / "reward.txt").write_bytes(b"\xff1")
    assert read_rewards(tmp_path).problem == "reward_invalid"


@pytest.mark.parametrize("name", ["reward.txt", "reward.json"])
def test_a_reward_path_that_is_no_regular_file_is_tampering(tmp_path: Path, name: str) -> None:
    for kind in ("folder", "link", "pipe"):
        folder = tmp_path / kind
        folder.mkdir()
        if kind == "folder":
            (folder / name).mkdir()
        elif kind == "link":
            (folder / name).symlink_to("/etc/hostname")
        else:
            os.mkfifo(folder / name)
        assert read_rewards(folder).problem == "reward_tampered", kind
    (tmp_path / "reward.json").write_text('{"reward": 1}')
    assert read_rewards(tmp_path, irregular=[name]).problem == "reward_tampered"


def test_the_wanted_key_scores_else_the_only_one() -> None:
    assert choose(Reading({"a": 1.0, "reward": 0.0}), "reward").key == "reward"
    assert choose(Reading({"a": 1.0}), "reward").key == "a"
    assert choose(Reading({"a": 1.0, "b": 1.0}), "reward").problem == "reward_key_missing"


def test_what_is_left_after_a_rejection_does_not_become_the_only_key() -> None:
    rejected = (RejectedReward(key="main", reason="a boolean is no number"),)
    assert choose(Reading({"a": 1.0}, rejected=rejected), "reward").problem == "reward_key_missing"
