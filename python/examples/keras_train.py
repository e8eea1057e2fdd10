"""Trains a small network with Keras 3 on any backend, with scalars, histograms and a recording.

Run it and look at it:

    KERAS_BACKEND=torch python examples/keras_train.py
    stepscope view runs/keras
"""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the matrices are too small for more

import keras
import numpy as np

import stepscope
import stepscope.keras

RUN = "runs/keras"


def main() -> None:
    x = np.random.default_rng(0).normal(size=(4096, 64)).astype("float32")
    y = np.sin(x[:, :8].sum(axis=1, keepdims=True))
    model = keras.Sequential(
        [
            keras.layers.Input((64,)),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer="adam", loss="mse", metrics=["mae"])
    callback = stepscope.keras.Callback(RUN, histograms=1, update_freq=10)
    with stepscope.record(f"{RUN}/trace"):
        model.fit(x, y, batch_size=128, epochs=5, validation_split=0.2, verbose=2, callbacks=[callback])


if __name__ == "__main__":
    main()
