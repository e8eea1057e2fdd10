"""A step of a convnet fed by worker processes."""

from common import *
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        return torch.randn(3, 64, 64), index % 100


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    net = Convnet().to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    batches = iter(DataLoader(Images(), 128, num_workers=2, pin_memory=DEVICE == "cuda"))

    def step():
        images, labels = next(batches)
        images = images.to(DEVICE, non_blocking=True, memory_format=torch.channels_last)
        labels = labels.to(DEVICE, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()

    record("conv", step, active=3, record_shapes=True, with_flops=True)


if __name__ == "__main__":
    main()
