from __future__ import annotations

import copy
import gzip
import io
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from recorded import Recorded, recorded_fixture  # noqa: F401

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import stepscope.torch  # noqa: E402
from stepscope.torch import trace_handler, watch  # noqa: E402


def forwards(recorded: Recorded) -> list[str]:
    return recorded.words("module.forward")


def backwards(recorded: Recorded) -> list[str]:
    words = recorded.words("module.backward")
    assert all(word.endswith(" backward") for word in words)
    return [word.removesuffix(" backward") for word in words]


# --- trace_handler


def profile(handler: Any) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], on_trace_ready=handler):
        torch.ones(2) + 1


@pytest.mark.parametrize("use_gzip", [True, False])
def test_trace_handler(tmp_path: Path, use_gzip: bool) -> None:
    folder = tmp_path / "new" / "folder"
    profile(trace_handler(folder, "worker0", use_gzip))
    profile(trace_handler(folder, use_gzip=use_gzip))
    names = sorted(os.listdir(folder), key=lambda name: not name.startswith("worker0"))
    assert len(names) == 2
    worker, timestamp, extension = names[0].split(".", 2)
    assert worker == "worker0" and abs(int(timestamp) / 1e9 - time.time()) < 600
    assert extension == "pt.trace.json" + (".gz" if use_gzip else "")
    assert f"_{os.getpid()}." in names[1] and names[1].endswith(extension)
    data = (folder / names[0]).read_bytes()
    assert json.loads(gzip.decompress(data) if use_gzip else data)["traceEvents"]


def test_trace_handler_leaves_nothing_after_a_failure(tmp_path: Path) -> None:
    class Profiler:
        def export_chrome_trace(self, path: str) -> None:
            Path(path).write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        trace_handler(tmp_path)(Profiler())
    assert os.listdir(tmp_path) == []


def test_trace_handler_rejects_paths_as_worker(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'a/b' becomes part of a file name"):
        trace_handler(tmp_path, "a/b")
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        trace_handler(tmp_path / "file")


# --- watch


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        return x + self.act(self.lin(x))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        return self.head(self.blocks(x))


def test_forward_and_backward_are_nested_slices(recorded: Recorded) -> None:
    model = Net()
    with watch(model):
        model(torch.randn(3, 4)).sum().backward()
    assert recorded.n_open() == 0
    assert forwards(recorded)[:7] == [
        "+Net", "+blocks", "+blocks.0", "+blocks.0.lin", "-blocks.0.lin", "+blocks.0.act", "-blocks.0.act",
    ]  # fmt: skip
    assert backwards(recorded) == [
        "+Net", "+head", "-head",
        "+blocks", "+blocks.1", "+blocks.1.act", "-blocks.1.act", "+blocks.1.lin", "-blocks.1.lin", "-blocks.1",
        "+blocks.0", "+blocks.0.act", "-blocks.0.act", "+blocks.0.lin", "-blocks.0.lin", "-blocks.0", "-blocks",
        "-Net",
    ]  # fmt: skip
    assert ("blocks.0.lin", {"module": "Linear"}) in recorded.args


def test_results_and_graph_are_unchanged(recorded: Recorded) -> None:
    def run(model: Net) -> tuple[Any, ...]:
        x = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
        out = model(x)
        out.sum().backward()

        def names(node: Any) -> list[str]:
            return [type(node).__name__] + [n for next_, _ in node.next_functions if next_ for n in names(next_)]

        return out, names(out.grad_fn), [p.grad for p in model.parameters()]

    plain = Net()
    watched = copy.deepcopy(plain)
    with watch(watched):
        out, graph, grads = run(watched)
    expected, expected_graph, expected_grads = run(plain)
    assert torch.equal(out, expected) and graph == expected_graph
    assert all(torch.equal(a, b) for a, b in zip(grads, expected_grads, strict=True))


def test_exception_in_forward(recorded: Recorded) -> None:
    class Fails(nn.Module):
        def forward(self, x: Any) -> Any:
            raise self.error

    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(Fails()))
    with watch(model):
        model[1][0].error = ValueError("in forward")
        with pytest.raises(ValueError):
            model(torch.randn(1, 4))
        assert recorded.n_open() == 0
        # torch calls no hooks for exceptions such as KeyboardInterrupt.
        model[1][0].error = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            model(torch.randn(1, 4))
        assert recorded.n_open() == 3
        model[1] = nn.Identity()
        model(torch.randn(1, 4))
        assert recorded.n_open() == 0


def test_exception_in_backward(recorded: Recorded) -> None:
    class Breaks(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise RuntimeError("in backward")

    class Broken(nn.Module):
        broken = True

        def forward(self, x: Any) -> Any:
            return Breaks.apply(x) if self.broken else x * 2

    model = nn.Sequential(nn.Linear(4, 4), Broken(), nn.Linear(4, 4))
    with watch(model):
        with pytest.raises(RuntimeError, match="in backward"):
            model(torch.randn(1, 4)).sum().backward()
        model[1].broken = False
        recorded.events.clear()
        model(torch.randn(1, 4)).sum().backward()
        assert recorded.n_open() == 0
        # The slices that the failure left open end first.
        assert backwards(recorded)[:2] == ["-1", "-Sequential"]
        assert backwards(recorded)[2:] == ["+Sequential", "+2", "-2", "+1", "-1", "+0", "-0", "-Sequential"]


def test_shared_and_repeated_modules(recorded: Recorded) -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = self.a
            self.outer = nn.Sequential(self.a)

        def forward(self, x: Any) -> Any:
            return self.outer(self.b(self.a(x)))

    model = Twice()
    with watch(model):
        model(torch.randn(1, 4)).sum().backward()
    assert recorded.n_open() == 0
    assert forwards(recorded) == ["+Twice", "+a", "-a", "+a", "-a", "+outer", "+a", "-a", "-outer", "-Twice"]
    assert backwards(recorded) == ["+Twice", "+outer", "+a", "-a", "-outer", "+a", "-a", "+a", "-a", "-Twice"]


def test_modules_without_gradients(recorded: Recorded) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(10, 4)
            self.position = nn.Embedding(10, 4)
            self.frozen = nn.Linear(4, 4).requires_grad_(False)
            self.identity = nn.Identity()
            self.unused = nn.Linear(4, 4)
            self.detached = nn.Linear(4, 4)
            self.lin = nn.Linear(4, 4)

        def forward(self, tokens: Any) -> Any:
            x = self.identity(self.embed(tokens))
            self.detached(x.detach())
            x = self.lin(x)
            return x + self.position(tokens) + self.frozen(torch.ones(4))

    model = Odd()
    with watch(model):
        model(torch.arange(3)).sum().backward()
        assert recorded.n_open() == 0
        words = backwards(recorded)
        assert words == ["+Odd", "+position", "-position", "+lin", "-lin", "+embed", "-embed", "-Odd"]
        with torch.no_grad():
            model(torch.arange(3))
        with torch.inference_mode():
            model(torch.arange(3))
    assert backwards(recorded) == words and recorded.n_open() == 0


def test_several_inputs_keywords_and_structures(recorded: Recorded) -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v = (nn.Linear(4, 4) for _ in range(3))

        def forward(self, *, states: Any, mask: Any = None, cache: tuple[Any, ...] = ()) -> dict[str, Any]:
            q, k, v = self.q(states), self.k(states), self.v(cache[0])
            return {"out": [(q @ k.T).softmax(-1) @ v], "mask": mask}

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Linear(4, 4)
            self.attention = Attention()

        def forward(self, x: Any) -> Any:
            x = self.embed(x)
            return self.attention(states=x, cache=(x * 2,))["out"][0]

    model = Model()
    with watch(model):
        model(torch.randn(3, 4)).sum().backward()
    assert recorded.n_open() == 0
    assert [word.replace("attention.", "") for word in backwards(recorded)] == [
        "+Model", "+attention", "+v", "-v", "+k", "-k", "+q", "-q", "-attention", "+embed", "-embed", "-Model",
    ]  # fmt: skip


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoint_recomputes_within_the_backward_slice(recorded: Recorded, use_reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = Block(), Block()

        def forward(self, x: Any) -> Any:
            return checkpoint(self.b, self.a(x), use_reentrant=use_reentrant)

    model = Model()
    with watch(model):
        model(torch.randn(3, 4)).sum().backward()
    assert recorded.n_open() == 0
    words = recorded.words()
    assert forwards(recorded).count("+b.lin") == 2
    begun = words.index("-Model") + 1
    assert "+Model backward" in words[begun:] and "+b.lin" in words[begun:] and words[-1] == "-Model backward"


def test_backward_within_forward(recorded: Recorded) -> None:
    class Energy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))

        def forward(self, x: Any) -> Any:
            x = x.detach().requires_grad_()
            return torch.autograd.grad(self.net(x).sum(), x, create_graph=True)[0]

    model = Energy()
    with watch(model):
        model(torch.randn(3, 4)).pow(2).sum().backward()
    assert recorded.n_open() == 0
    assert forwards(recorded)[0] == "+Energy" and forwards(recorded)[-1] == "-Energy"


def test_optimizer_steps_and_data(recorded: Recorded) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = [torch.randn(2, 4) for _ in range(2)]
    with watch(model, optimizer, data) as watched:
        assert len(watched.dataloader) == 2 and watched.dataloader.count is not None
        for _epoch in range(2):
            for x in watched.dataloader:
                for part in x:  # gradient accumulation is one step
                    model(part).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
            model.eval()
            model(data[0])
            model.train()
    words = recorded.words()
    assert recorded.n_open() == 0
    assert words[:5] == ["begin_step", "+start data loader", "-start data loader", "+wait for data", "-wait for data"]
    first = words[: words.index("end_step") + 1]
    assert first[-3:] == ["+SGD.step", "-SGD.step", "end_step"] and first.count("+Linear") == 2
    assert first.count("+Linear backward") == 2
    assert words.count("+wait for data") == 6
    assert words.count("begin_step") == words.count("end_step") == 5 and words[-1] == "end_step"


def test_step_that_raises(recorded: Recorded) -> None:
    class Fails(torch.optim.SGD):
        fails = True

        def step(self, closure: Any = None) -> None:
            if self.fails:
                raise RuntimeError("in step")

    model = nn.Linear(4, 1)
    optimizer = Fails(model.parameters(), 0.1)
    with watch(model, optimizer):
        with pytest.raises(RuntimeError):
            optimizer.step()
        optimizer.fails = False
        optimizer.step()
        assert recorded.n_open() == 0


def test_closure_of_lbfgs(recorded: Recorded) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(torch.ones(1, 4)).pow(2).sum()
        loss.backward()
        return loss

    with watch(model, optimizer):
        optimizer.step(closure)
    words = recorded.words()
    assert words[:3] == ["begin_step", "+LBFGS.step", "+Linear"] and words[-2:] == ["-LBFGS.step", "end_step"]


def test_real_data_loader(recorded: Recorded) -> None:
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 2)), batch_size=2)
    watched = watch(nn.Linear(2, 1), dataloader=loader).dataloader
    assert watched.batch_size == 2 and len(watched) == 2
    assert [batch[0].shape[0] for batch in watched] == [2, 2]
    assert "begin_step" not in recorded.words()  # there are none without an optimiser


def test_remove_in_the_middle(recorded: Recorded) -> None:
    model = Net()
    watched = watch(model)
    loss = model(torch.randn(3, 4)).sum()
    watched.remove()
    watched.remove()
    recorded.events.clear()
    loss.backward()
    model(torch.randn(3, 4)).sum().backward()
    assert recorded.events == []
    assert not any(m._forward_hooks or m._forward_pre_hooks or m._backward_hooks for m in model.modules())


def test_nothing_happens_while_not_recording(recorded: Recorded) -> None:
    recorded.recording = False
    model = Net()
    with watch(model):
        out = model(torch.randn(3, 4))
        recorded.recording = True  # begins in the middle of a step
        out.sum().backward()
        model(torch.randn(3, 4)).sum().backward()
    assert recorded.n_open() == 0 and recorded.n_begun("head") == recorded.n_begun("head backward") == 1


def test_leaf_inputs_do_not_collect_hooks(recorded: Recorded) -> None:
    image = torch.zeros(1, 4, requires_grad=True)
    model = Net()
    with watch(model):
        for _ in range(3):
            model(image).sum().backward()
    assert not image._backward_hooks and recorded.n_open() == 0


def test_threads_are_apart(recorded: Recorded) -> None:
    model = Net()
    with watch(model):
        threads = [
            threading.Thread(target=lambda: [model(torch.randn(3, 4)).sum().backward() for _ in range(20)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert recorded.n_open() == 0 and recorded.n_begun("head") == recorded.n_begun("head backward") == 80


def test_copied_and_saved_models(recorded: Recorded) -> None:
    model = Net()
    with watch(model):
        copy.deepcopy(model)(torch.randn(3, 4))
        file = io.BytesIO()
        torch.save(model, file)
        recorded.events.clear()
        file.seek(0)
        torch.load(file, weights_only=False)(torch.randn(3, 4))
    assert recorded.events == []


def test_compiled_modules_are_left_alone(recorded: Recorded) -> None:
    model = Net()
    model.blocks[1] = torch.compile(model.blocks[1], backend="eager")
    model.head.compile(backend="eager")
    with pytest.warns(UserWarning, match=r"left alone, because compiled: blocks\.1, head") as caught:
        watched = watch(model)
    assert caught[0].filename == __file__
    model(torch.randn(3, 4)).sum().backward()
    watched.remove()
    names = {w[1:].removesuffix(" backward") for w in recorded.words()}
    assert recorded.n_open() == 0
    assert names == {"Net", "blocks", "blocks.0", "blocks.0.lin", "blocks.0.act"}


def test_steps_of_a_compiled_model(recorded: Recorded) -> None:
    model = torch.compile(nn.Linear(4, 1), backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with pytest.warns(UserWarning, match="OptimizedModule"), watch(model, optimizer):
        for _ in range(2):
            model(torch.randn(1, 4)).sum().backward()
            optimizer.step()
    step = ["begin_step", "+SGD.step", "-SGD.step", "end_step"]
    assert recorded.words() == [*step, *step, "begin_step", "end_step"]


def test_compiling_a_watched_model(recorded: Recorded) -> None:
    model = Net()
    with watch(model):
        compiled = torch.compile(lambda x: model(x) * 2, backend="eager", fullgraph=True)
        compiled(torch.randn(3, 4)).sum().backward()
    assert recorded.n_open() == 0


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match=r"expected a torch\.nn\.Module as model, got function"):
        watch(lambda x: x)
    with pytest.raises(TypeError, match=r"expected a torch\.optim\.Optimizer"):
        watch(Net(), optimizer="SGD")
    with pytest.raises(TypeError, match="expected an iterable of batches"):
        watch(Net(), dataloader=3)


def test_our_module_does_not_hide_torch() -> None:
    assert stepscope.torch is not torch and torch.__name__ == "torch"
