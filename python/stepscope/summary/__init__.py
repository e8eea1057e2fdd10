"""TensorBoard logs, written without TensorFlow, TensorBoard, protobuf or PyTorch.

`SummaryWriter` takes the place of `torch.utils.tensorboard.SummaryWriter` and `tensorboardX.SummaryWriter`: it has
the methods and parameters of both, and what it writes reads the same.

Example:
    >>> from stepscope.summary import SummaryWriter
    >>> with SummaryWriter("runs/baseline") as writer:
    ...     for step in range(100):
    ...         writer.add_scalar("loss", 1 / (step + 1), step)
"""

from ._file_writer import FileWriter
from ._writer import SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
