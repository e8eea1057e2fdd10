# What gpu_check.rs measures, by PyTorch: a line `what|value|unit` each.
import time
import torch
import torch.nn as nn

assert torch.cuda.is_available(), "PyTorch has no GPU"
gpu = torch.device("cuda")


def best(f, repeats, rounds=5):
    f()
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(repeats):
            f()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / repeats)
    return min(times)


for name, dtype, tf32 in [("f32", torch.float32, False), ("tf32", torch.float32, True), ("f16", torch.float16, False), ("bf16", torch.bfloat16, False)]:
    torch.backends.cuda.matmul.allow_tf32 = tf32
    for n in [1024, 4096, 8192]:
        a, b = (torch.zeros(n, n, device=gpu, dtype=dtype) for _ in range(2))
        c = torch.empty(n, n, device=gpu, dtype=dtype)
        seconds = best(lambda: torch.matmul(a, b, out=c), (200 << 30) // n**3 + 3)
        print(f"product {name} {n}|{2 * n**3 / seconds / 1e12}|TFLOP/s")
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False


def step(model, x, labels, optimizer, loss_of):
    def run():
        optimizer.zero_grad()
        loss = loss_of(model, x.to(gpu), labels.to(gpu))
        loss.backward()
        optimizer.step()
        loss.item()
    return run


def trains(what, model, x, labels):
    sgd = torch.optim.SGD(model.parameters(), 0.02, 0.9)
    run = step(model, x, labels, sgd, lambda m, x, y: nn.functional.cross_entropy(m(x), y))
    print(f"step of {what}|{best(run, 50) * 1e3}|ms")


mlp = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000)).to(gpu)
trains("mlp 1024-4096-4096-1000, batch 512", mlp, torch.rand(512, 1024), torch.randint(0, 1000, (512,)))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = (nn.Conv2d(128, 128, 3, padding=1, bias=False) for _ in range(2))
        self.norm_a, self.norm_b = (nn.BatchNorm2d(128, eps=1e-3) for _ in range(2))
        self.out = nn.Linear(128, 10, bias=False)

    def forward(self, x):
        y = self.norm_b(self.b(torch.relu(self.norm_a(self.a(x)))))
        return self.out(torch.relu(x + y).mean((2, 3)))


# Channels last, as our images lie.
residual = Residual().to(gpu, memory_format=torch.channels_last)
images = torch.rand(64, 128, 28, 28).contiguous(memory_format=torch.channels_last)
trains("resnet block 128 x 28 x 28, batch 64", residual, images, torch.randint(0, 10, (64,)))

convnet = nn.Sequential(
    nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(7 * 7 * 64, 1024), nn.ReLU(), nn.Linear(1024, 10)).to(gpu)
trains("convnet, batch 256", convnet, torch.rand(256, 1, 28, 28), torch.randint(0, 10, (256,)))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.vectors = nn.Embedding(10000, 650)
        self.lstm = nn.LSTM(650, 650, 2)
        self.out = nn.Linear(650, 10000)

    def forward(self, words):
        return self.out(self.lstm(self.vectors(words))[0])


words = Words().to(gpu)
x, labels = torch.randint(0, 10000, (20, 64)), torch.randint(0, 10000, (20, 64))
run = step(words, x, labels, torch.optim.SGD(words.parameters(), 0.02, 0.9),
           lambda m, x, y: nn.functional.cross_entropy(m(x).flatten(0, 1), y.flatten()))
print(f"step of lstm 2 x 650, 20 words, batch 64|{best(run, 50) * 1e3}|ms")
