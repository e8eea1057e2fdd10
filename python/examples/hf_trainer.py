"""Trains a tiny transformer, made here and not downloaded, with the Trainer of Hugging Face.

Run it and look at it:

    pip install "transformers[torch]"
    python examples/hf_trainer.py
    stepscope view runs/hf
"""

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import stepscope
import stepscope.torch
from stepscope.transformers import StepscopeCallback

RUN = "runs/hf"


def examples(n: int, seed: int) -> list[dict[str, torch.Tensor]]:
    """Sequences of digits, labelled by whether the first is larger than the last."""
    tokens = torch.randint(0, 10, (n, 16), generator=torch.Generator().manual_seed(seed))
    return [{"input_ids": row, "labels": (row[0] > row[-1]).long()} for row in tokens]


def main() -> None:
    torch.set_num_threads(1)  # the matrices are too small for more
    config = BertConfig(
        vocab_size=10, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=2
    )
    model = BertForSequenceClassification(config)
    arguments = TrainingArguments(
        output_dir=f"{RUN}/checkpoints",
        num_train_epochs=2,
        per_device_train_batch_size=32,
        learning_rate=1e-3,
        logging_steps=5,
        eval_strategy="epoch",
        save_strategy="no",
        report_to="none",
        use_cpu=True,
    )
    trainer = Trainer(
        model,
        arguments,
        train_dataset=examples(1024, seed=0),
        eval_dataset=examples(256, seed=1),
        callbacks=[StepscopeCallback(RUN)],
    )
    with stepscope.record(f"{RUN}/trace"), stepscope.torch.watch(model):
        trainer.train()


if __name__ == "__main__":
    main()
