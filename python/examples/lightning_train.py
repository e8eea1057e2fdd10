"""Trains a small network with Lightning, with its metrics and hyperparameters logged and its phases recorded.

Run it and look at it:

    pip install lightning
    python examples/lightning_train.py
    stepscope view runs/lightning
"""

import lightning
import torch
from torch import nn

import stepscope
import stepscope.torch
from stepscope.lightning import StepscopeCallback, StepscopeLogger

RUNS = "runs/lightning"


class Regression(lightning.LightningModule):
    def __init__(self, width: int = 128, lr: float = 1e-3) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        self.log("loss/train", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("loss/validation", nn.functional.mse_loss(self.net(x), y))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


def main() -> None:
    torch.set_num_threads(1)  # the matrices are too small for more
    lightning.seed_everything(0)
    x = torch.randn(4096, 64)
    y = x[:, :8].sum(dim=1, keepdim=True).sin()
    data = torch.utils.data.TensorDataset(x, y)
    train, validation = torch.utils.data.random_split(data, [3584, 512])
    model = Regression()
    logger = StepscopeLogger(RUNS, name="regression")
    trainer = lightning.Trainer(
        max_epochs=3, accelerator="cpu", logger=logger, callbacks=[StepscopeCallback()], log_every_n_steps=5
    )
    with stepscope.record(f"{logger.log_dir}/trace"), stepscope.torch.watch(model.net):
        trainer.fit(
            model,
            torch.utils.data.DataLoader(train, batch_size=128, shuffle=True),
            torch.utils.data.DataLoader(validation, batch_size=128),
        )


if __name__ == "__main__":
    main()
