from collections.abc import Callable

import pytest
import torch
from test_loop import RECIPE, batches, network

from refusals import expect_error
from training.tied_network import Tied, TiedConfig
from trialogue.errors import InputError
from trialogue.models import Transformer, TransformerConfig
from trialogue.tensor_files import read_tensors, write_tensors
from trialogue.training import TrainingConfig, load_model, save_model, train


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("positions", ["learned", "linear"])
def test_saved_model_is_restored(dtype, positions, tmp_path):
    model = Transformer(TransformerConfig(vocab_size=3, positions=positions), seed=5).to(dtype)  # type: ignore[arg-type]
    back = load_model(save_model(model, tmp_path / "folder" / "model.safetensors"), Transformer)
    assert back.config == model.config
    assert not back.training
    for name, parameter in model.named_parameters():
        assert torch.equal(back.get_parameter(name), parameter)
        assert back.get_parameter(name).dtype == dtype
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("half", [False, True])
def test_user_defined_network_is_restored(half, tmp_path):
    model = Tied(TiedConfig(half=half), seed=2)
    model.calls += 7
    back = load_model(save_model(model, tmp_path / "tied.safetensors"), Tied)
    assert back.config == model.config
    assert back.head.weight is back.embedding
    assert torch.equal(back.embedding, model.embedding)
    assert back.calls == 7
    assert back.shift.dtype == model.shift.dtype
    assert isinstance(load_model(tmp_path / "tied.safetensors"), Tied)


def test_file_of_another_network_is_rejected(tmp_path):
    path = save_model(network(), tmp_path / "model.safetensors")
    expect_error(r"model\.safetensors.*'transformer', not a Tied", load_model, path, Tied)
    tensors, metadata = read_tensors(path, "trialogue network 1", "")
    unknown = write_tensors(
        tmp_path / "other.safetensors", "trialogue network 1", tensors, metadata | {"network": "unheard"}
    )
    expect_error(r"unheard.*no such kind of model: use one of transformer", load_model, unknown)
    wider = metadata | {"config": metadata["config"] | {"width": 32}}
    path = write_tensors(tmp_path / "wider.safetensors", "trialogue network 1", tensors, wider)
    expect_error("do not agree", load_model, path)


def test_models_that_cannot_be_restored_are_not_saved(tmp_path):
    expect_error("register_network", save_model, torch.nn.Linear(2, 2), tmp_path / "linear.safetensors")
    expect_error("tuples", save_model, Tied(TiedConfig([3, 4])), tmp_path / "tied.safetensors")
    assert not list(tmp_path.iterdir())


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[:-7],
    "flipped": lambda content: content[:-9] + bytes([content[-9] ^ 4]) + content[-8:],
    "empty": lambda content: b"",
    "garbage": lambda content: b"not a checkpoint at all",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_file_is_rejected_with_a_hint(damage, tmp_path):
    path = save_model(network(), tmp_path / "model.safetensors")
    path.write_bytes(damage(path.read_bytes()))
    expect_error(r"model\.safetensors.*write it again", load_model, path)
    folder = tmp_path / "run"
    train(network(), batches, RECIPE, checkpoint_dir=folder, progress=False)
    (path,) = folder.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=r"training\.safetensors.*delete it to start again"):
        train(network(), batches, RECIPE, checkpoint_dir=folder, progress=False)


def test_missing_file_and_file_of_another_kind_are_rejected(tmp_path):
    expect_error("no such file", load_model, tmp_path / "absent")
    train(network(), batches, RECIPE, checkpoint_dir=tmp_path, progress=False)
    expect_error("not a file of kind", load_model, tmp_path / "training.safetensors")


@pytest.mark.parametrize("change", ["learning_rate", "ema", "seed", "width"])
def test_checkpoint_of_another_run_is_rejected(change, tmp_path):
    train(network(), batches, RECIPE, checkpoint_dir=tmp_path, progress=False)
    model = network(width=32) if change == "width" else network()
    fields = {"learning_rate": 1e-3, "ema": "constant", "seed": 4}
    other = TrainingConfig(**vars(RECIPE) | {name: fields[name] for name in fields if name == change})  # type: ignore[arg-type]
    expect_error(change, train, model, batches, other, checkpoint_dir=tmp_path, progress=False)


def test_checkpoint_and_log_intervals_can_change(tmp_path):
    train(network(), batches, RECIPE, checkpoint_dir=tmp_path, progress=False)
    other = TrainingConfig(**vars(RECIPE) | {"checkpoint_every": 7, "log_every": 5})  # type: ignore[arg-type]
    assert train(network(), batches, other, checkpoint_dir=tmp_path, progress=False).first_step == 20
