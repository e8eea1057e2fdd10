"""`SummaryWriter`: the methods of the writers of PyTorch and tensorboardX."""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import time
import warnings
from array import array
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _custom_scalars, _embedding, _graph, _histogram, _hparams, _images, _pr_curve, _tensors, _video
from . import _messages as messages
from ._arrays import to_float, to_numpy, to_real
from ._file_writer import FileWriter, opening

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class SummaryWriter:
    """Writes a TensorBoard log: scalars, histograms, images, texts and more, by tag and step.

    This class is a drop-in for `torch.utils.tensorboard.SummaryWriter` and `tensorboardX.SummaryWriter`. Where these
    two differ, it does what PyTorch does. All methods may be called from any thread; a forked process that uses a
    writer of its parent gets an event file of its own in the same folder.

    Parameters that most methods have:

    - `tag`: the name of the series.
    - `global_step`: the step, 0 by default (or that of `use_metadata`).
    - `walltime`: the time in seconds since 1970, now by default (or that of `use_metadata`).
    - Values may be tensors of PyTorch (on any device), JAX, TensorFlow and others, numpy arrays, lists, or numbers.

    Example:
        >>> with SummaryWriter("runs/baseline") as writer:
        ...     for step in range(100):
        ...         writer.add_scalar("loss", 1 / (step + 1), step)

    Args:
        log_dir: The folder of the event file; it is created if it does not exist. By default, it is
            `runs/DATE_TIME_HOST`, so that every run has its own.
        comment: What is appended to the default `log_dir`.
        purge_step: The step at which a crashed run goes on: TensorBoard drops what the folder has from there on.
        max_queue: Accepted for compatibility: records never wait for others.
        flush_secs: Accepted for compatibility: every record is in the file within 100 ms.
        filename_suffix: What the names of event files end in.
        write_to_disk: If False, nothing is written.
        logdir: Another name for `log_dir`, as in tensorboardX.
        comet_config: Only None and `{"disabled": True}` are accepted: nothing is sent to Comet.

    Raises:
        OSError: If the folder or the file cannot be created.
        ValueError: If `log_dir` is a URL, or Comet is to be used.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
        write_to_disk: bool = True,
        logdir: str | os.PathLike[str] | None = None,
        comet_config: Mapping[str, Any] | None = None,
    ) -> None:
        if comet_config is not None and not comet_config.get("disabled", False):
            raise ValueError(
                "stepscope.summary.SummaryWriter does not send to Comet: leave out comet_config, or call "
                "comet_ml.Experiment(...) before training, which follows the writers of PyTorch and tensorboardX only"
            )
        now = datetime.now().strftime("%b%d_%H-%M-%S")
        self.log_dir = log_dir or logdir or os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.logdir = self.log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._write_to_disk = write_to_disk
        self._embeddings: list[str] = []
        self._scalars: dict[str, array[float]] = {}  # walltime, step, value, walltime, ... of `add_scalars`
        self._get_file_writer()

    @cached_property
    def default_bins(self) -> list[float]:
        """The edges of the buckets that `bins="tensorflow"` stands for."""
        return _histogram.tensorflow_bins()

    def _get_file_writer(self) -> FileWriter:
        """Returns the writer of the event file in `log_dir`, opening a new file if there is none or it was closed."""
        with opening:
            if self.file_writer is None or self.all_writers is None:
                self.file_writer = self._open(str(self.log_dir))
                self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
                if self.purge_step is not None:
                    self.file_writer.add_event(messages.file_version(), self.purge_step)
                    self.file_writer.add_event(messages.session_start(), self.purge_step)
                    self.purge_step = None
            return self.file_writer

    def _open(self, log_dir: str) -> FileWriter:
        return FileWriter(
            log_dir, self.max_queue, self.flush_secs, self.filename_suffix, write_to_disk=self._write_to_disk
        )

    def _add(self, summary: bytes, global_step: int | None = None, walltime: float | None = None) -> None:
        (self.file_writer or self._get_file_writer()).add_summary(summary, global_step, walltime)

    def get_logdir(self) -> str | os.PathLike[str]:
        """Returns the folder of the event files, as it was given."""
        return self.log_dir

    @contextlib.contextmanager
    def use_metadata(self, *, global_step: int | None = None, walltime: float | None = None) -> Iterator[SummaryWriter]:
        """Sets the step and the time of what is added in a `with` block, by any thread, without one of its own.

        Example:
            >>> with writer.use_metadata(global_step=10):
            ...     writer.add_scalar("loss", 3.0)
        """
        with self._get_file_writer().use_metadata(global_step=global_step, walltime=walltime):
            yield self

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
        *,
        name: str | None = None,
    ) -> None:
        """Adds the hyperparameters and results of a run, as a run in a folder of its own in that of this writer.

        Args:
            hparam_dict: Numbers, bools, texts, one-element tensors, functions or classes, by name.
            metric_dict: The results by tag, which should not be tags of `add_scalar`.
            hparam_domain_discrete: The possible values of some of the hyperparameters.
            run_name: The name of the folder; the time by default.
            global_step: The step.
            name: Another name for `run_name`, as in tensorboardX; it may also be the third positional argument.

        Raises:
            TypeError: If the type of a value or of a domain does not fit.
        """
        if isinstance(hparam_domain_discrete, str):
            # tensorboardX has name and global_step in these places.
            name, hparam_domain_discrete = hparam_domain_discrete, None
            if isinstance(run_name, int):
                run_name, global_step = None, run_name
        for argument in (hparam_dict, metric_dict, hparam_domain_discrete or {}):
            if not isinstance(argument, Mapping):
                raise TypeError(f"add_hparams expects dictionaries, not {type(argument).__name__}: {argument!r}")
        summaries = _hparams.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        metrics = {tag: to_float(value, tag) for tag, value in metric_dict.items()}
        writer = self._get_file_writer()
        folder = os.path.join(writer.get_logdir(), run_name or name or str(time.time()))
        with SummaryWriter(folder, write_to_disk=self._write_to_disk) as run:
            for summary in summaries:
                run._add(summary, writer.step(global_step), writer.default_walltime)
            for tag, value in metrics.items():
                run.add_scalar(tag, value, writer.step(global_step), writer.default_walltime)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
        display_name: str = "",
        summary_description: str = "",
    ) -> None:
        """Adds one number.

        Args:
            tag: The name of the series.
            scalar_value: A number, or a tensor or array of one element.
            global_step: The step.
            walltime: The time.
            new_style: Whether to write a tensor rather than a simple value, as TensorFlow 2 does.
            double_precision: Whether that tensor has double precision.
            display_name: The title of the chart; the tag by default.
            summary_description: An explanation of the chart, in Markdown.

        Raises:
            TypeError: If it is not a number.
            ValueError: If there is more than one element, or none.
        """
        writer = self.file_writer or self._get_file_writer()
        if type(scalar_value) is not float:
            scalar_value = to_float(scalar_value, tag)
        if type(global_step) is not int:
            global_step = writer.step(global_step)
        if walltime is None:
            walltime = writer.default_walltime
        if not (new_style or display_name or summary_description):
            writer.add_scalar(tag, scalar_value, global_step, walltime)
            return
        if isinstance(new_style, str):  # tensorboardX has display_name and summary_description in these places
            new_style, display_name = False, new_style
            if isinstance(double_precision, str):
                double_precision, summary_description = False, double_precision
        summary = _tensors.scalar(tag, scalar_value, new_style, double_precision, display_name, summary_description)
        writer.add_summary(summary, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds numbers that share a chart: each goes to a run of its own, in a folder in that of this writer.

        Args:
            main_tag: The tag in all of these runs.
            tag_scalar_dict: The numbers by the name of their run, which is appended to the tag.
            global_step: The step.
            walltime: The time.

        The numbers are also kept in memory (24 bytes each) for `export_scalars_to_json`.
        """
        main = self._get_file_writer()
        step = main.step(global_step)
        if walltime is None:
            walltime = time.time() if main.default_walltime is None else main.default_walltime
        for tag, value in tag_scalar_dict.items():
            value = to_float(value, f"{main_tag}/{tag}")
            folder = f"{main.get_logdir()}/{main_tag.replace('/', '_')}_{tag}"
            with opening:
                self._get_file_writer()
                assert self.all_writers is not None
                if folder not in self.all_writers:
                    self.all_writers[folder] = self._open(folder)
                writer = self.all_writers[folder]
                exported_step = math.nan if global_step is None else step
                self._scalars.setdefault(folder, array("d")).extend((walltime, exported_step, value))
            writer.add_scalar(main_tag, value, step, walltime)

    def export_scalars_to_json(self, path: str | os.PathLike[str]) -> None:
        """Writes the numbers of `add_scalars` to a JSON file, and forgets them.

        Args:
            path: The file. It gets an object with a list of `[time, step, value]` for each folder.
        """
        with opening:
            scalars = {
                folder: [
                    [walltime, None if math.isnan(step) else int(step), value]
                    for walltime, step, value in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
                ]
                for folder, numbers in self._scalars.items()
            }
            with open(path, "w", encoding="utf-8") as file:
                json.dump(scalars, file)
            self._scalars = {}

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Adds a tensor with all of its values, in its own type.

        Raises:
            ValueError: If TensorFlow has no such type, or the tensor has 2 GiB or more.
        """
        self._add(_tensors.tensor(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Adds the distribution of values.

        Args:
            tag: The name of the series.
            values: The values, in any shape.
            global_step: The step.
            bins: `"tensorflow"` for buckets that grow by a tenth, or what `numpy.histogram` takes: the name of a rule
                such as `"auto"`, a number of bins, or their edges.
            walltime: The time.
            max_bins: If there are more bins, neighbours are merged.

        Raises:
            TypeError: If the values are not real numbers.
            ValueError: If there are no values, or none lies in a bin.
        """
        array = to_real(values, tag).reshape(-1)
        if array.size == 0:
            raise ValueError(f"{tag}: a histogram of no values")
        if isinstance(bins, str) and bins == "tensorflow":
            # Someone who looked at the default bins may have changed them.
            if max_bins is None and "default_bins" not in vars(self):
                self._add_native_histogram(tag, array.tobytes(), global_step, walltime)
                return
            bins = self.default_bins
        self._add(_histogram.histogram(tag, array, bins, max_bins), global_step, walltime)

    def _add_native_histogram(self, tag: str, values: bytes, global_step: int | None, walltime: float | None) -> None:
        writer = self.file_writer or self._get_file_writer()
        walltime = writer.default_walltime if walltime is None else walltime
        left_out = writer.add_histogram(tag, values, writer.step(global_step), walltime)
        if left_out:
            warnings.warn(f"{tag}: {left_out} NaN or infinite values are left out of the histogram", stacklevel=3)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a histogram that was computed elsewhere.

        Args:
            tag: The name of the series.
            min: The smallest value.
            max: The largest value.
            num: The number of values.
            sum: Their sum.
            sum_squares: The sum of their squares.
            bucket_limits: The upper limit of each bucket.
            bucket_counts: The number of values in each bucket.
            global_step: The step.
            walltime: The time.

        Raises:
            ValueError: If there are not as many limits as counts.
        """
        limits, counts = (to_real(bucket, tag).reshape(-1).tolist() for bucket in (bucket_limits, bucket_counts))
        if len(limits) != len(counts):
            raise ValueError(f"{tag}: {len(limits)} bucket_limits do not fit {len(counts)} bucket_counts")
        numbers = (to_float(number, tag) for number in (min, max, num, sum, sum_squares))
        content = messages.histogram(numbers, limits, counts)
        self._add(messages.summary(messages.value(tag, content)), global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Adds an image.

        Args:
            tag: The name of the series.
            img_tensor: Bytes in 0..255 (uint8), or values in 0..1 of any other type; values beyond are clipped.
            global_step: The step.
            walltime: The time.
            dataformats: A letter for each dimension: `CHW`, `HWC`, `HW`, `WH`, `NCHW` and so on. There are 1 (grey),
                3 (RGB) or 4 channels (RGBA).

        Raises:
            ValueError: If the shape does not fit.
        """
        self._add(_images.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Adds a batch of images, as one image: a grid of eight columns.

        Args:
            tag: The name of the series.
            img_tensor: The images, as in `add_image`, or a list of them (then `dataformats` is `CHW` or `HWC`).
            global_step: The step.
            walltime: The time.
            dataformats: A letter for each dimension: `NCHW`, `NHWC` and so on.

        Raises:
            ValueError: If the shape does not fit.
        """
        if isinstance(img_tensor, list) and len(dataformats) == 3:
            dataformats = f"N{dataformats}"
        self._add(_images.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: str | Sequence[str] | None = None,
    ) -> None:
        """Adds an image with boxes drawn on it; this needs Pillow.

        Args:
            tag: The name of the series.
            img_tensor: The image, as in `add_image`.
            box_tensor: A row of left, top, right, bottom for each box, in pixels.
            global_step: The step.
            walltime: The time.
            rescale: The factor by which the image is enlarged.
            dataformats: A letter for each dimension, as in `add_image`.
            labels: A text for each box; if their number does not fit, none is drawn, with a warning.

        Raises:
            ValueError: If a shape does not fit.
        """
        if isinstance(rescale, str):  # tensorboardX has dataformats and labels in these places
            labels = dataformats if labels is None and dataformats != "CHW" else labels
            rescale, dataformats = 1, rescale
        boxes = to_numpy(box_tensor, tag)
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise ValueError(f"{tag}: the boxes must have the shape (number, 4), not {boxes.shape}")
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != len(boxes):
            warnings.warn(f"{tag}: {len(labels)} labels do not fit {len(boxes)} boxes; none is drawn", stacklevel=2)
            labels = None
        self._add(_images.image(tag, img_tensor, dataformats, rescale, boxes, labels), global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Figure | list[Figure],
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Adds a figure of matplotlib, or a list of figures of one size, as an image.

        Args:
            tag: The name of the series.
            figure: The figure or figures.
            global_step: The step.
            close: Whether to close the figures.
            walltime: The time.
        """
        dataformats = "NCHW" if isinstance(figure, (list, tuple)) else "CHW"
        self.add_image(tag, _images.rendered(figure, close), global_step, walltime, dataformats)

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: int | None = None,
        fps: float = 4,
        walltime: float | None = None,
        dataformats: str = "NTCHW",
    ) -> None:
        """Adds videos, as one animated GIF in which they are arranged in a grid; this needs Pillow.

        Args:
            tag: The name of the series.
            vid_tensor: Bytes in 0..255 (uint8), or values in 0..1 of any other type; 1 or 3 channels.
            global_step: The step.
            fps: Frames per second.
            walltime: The time.
            dataformats: A letter for each dimension: N, T (time), C, H, W in any order.

        Raises:
            ValueError: If the shape does not fit.
        """
        self._add(_video.video(tag, vid_tensor, fps, dataformats), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Adds a sound, with 16 bits per sample.

        Args:
            tag: The name of the series.
            snd_tensor: Amplitudes in -1..1, of one channel, or of the shape (frames, 2) for stereo.
            global_step: The step.
            sample_rate: Frames per second.
            walltime: The time.

        Raises:
            ValueError: If the shape does not fit.
        """
        self._add(_video.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Adds a text in Markdown; the tag is `tag/text_summary`.

        Raises:
            TypeError: If it is not a string.
        """
        self._add(_tensors.text(tag, text_string), global_step, walltime)

    def add_onnx_graph(
        self, prototxt: str | os.PathLike[str] | None = None, *, onnx_model_file: str | os.PathLike[str] | None = None
    ) -> None:
        """Adds the graph of an ONNX file; this needs the package onnx.

        Args:
            prototxt: The file.
            onnx_model_file: Another name for `prototxt`, as in tensorboardX.
        """
        path = onnx_model_file if prototxt is None else prototxt
        if path is None:
            raise TypeError("add_onnx_graph needs the path of an ONNX file")
        self._get_file_writer().add_onnx_graph(_graph.graph_of_onnx(path))

    def add_openvino_graph(self, xmlname: str | os.PathLike[str]) -> None:
        """Adds the graph of an OpenVINO model.

        Args:
            xmlname: The XML file of the model.

        Raises:
            ValueError: If the file has no layers or edges.
        """
        self._get_file_writer().add_openvino_graph(_graph.graph_of_openvino(xmlname))

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Adds the graph of a PyTorch module, which is traced with `torch.jit.trace` in evaluation mode.

        Args:
            model: The `torch.nn.Module`.
            input_to_model: The input, or a tuple of the arguments of `forward`.
            verbose: Whether to print the trace.
            use_strict_trace: False allows lists and dictionaries that the model changes.

        Raises:
            TypeError: If it is not a module.
            RuntimeError: If it cannot be traced.
        """
        graph = _graph.graph_of_module(model, input_to_model, verbose, use_strict_trace)
        self._get_file_writer().add_graph(graph)

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Adds vectors for the projector, in files next to the event file.

        Args:
            mat: A row for each point.
            metadata: A label for each point; with `metadata_header`, a list of values for each point.
            label_img: An image (NCHW) for each point.
            global_step: The step.
            tag: The name of the embedding.
            metadata_header: The names of the columns of `metadata`.

        Raises:
            ValueError: If there are not as many labels or images as points, or a shape does not fit.
        """
        writer = self._get_file_writer()
        if not self._write_to_disk:
            return
        with opening:
            entry, existed = _embedding.write_embedding(
                writer.get_logdir(), tag, mat, metadata, label_img, writer.step(global_step), metadata_header
            )
            self._embeddings.append(entry)
            _embedding.write_config(writer.get_logdir(), self._embeddings)
        if existed:
            warnings.warn(f"the embedding {tag!r} of this step is overwritten; pass a global_step", stacklevel=2)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a precision-recall curve.

        Args:
            tag: The name of the series.
            labels: The truth for each element: 0 or 1.
            predictions: The predicted probability of 1 for each element.
            global_step: The step.
            num_thresholds: The number of thresholds, at most 127.
            weights: A weight for each element, or for all of them; 1 by default.
            walltime: The time.

        Raises:
            ValueError: If the shapes of labels and predictions differ.
        """
        self._add(_pr_curve.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a precision-recall curve that was computed elsewhere.

        Args:
            tag: The name of the series.
            true_positive_counts: The number of true positives at each threshold.
            false_positive_counts: The number of false positives at each threshold.
            true_negative_counts: The number of true negatives at each threshold.
            false_negative_counts: The number of false negatives at each threshold.
            precision: The precision at each threshold.
            recall: The recall at each threshold.
            global_step: The step.
            num_thresholds: The number of thresholds, at most 127.
            weights: Accepted for compatibility: the counts have their weights already.
            walltime: The time.

        Raises:
            ValueError: If the lengths differ.
        """
        counts = (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts)
        summary = _pr_curve.pr_curve_raw(tag, (*counts, precision, recall), num_thresholds)
        self._add(summary, global_step, walltime)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Adds a layout of one chart, in which the scalars of all tags are drawn; see `add_custom_scalars`."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Adds a layout of one chart with a margin, of the tags of value, lower and upper limit."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout: _custom_scalars.Layout) -> None:
        """Adds a layout of charts. TensorBoard takes the last one of a run, so call this once.

        Args:
            layout: Charts by title, by category. A chart is `["Multiline", tags]` or
                `["Margin", [value, lower, upper]]`.

        Raises:
            ValueError: If a chart is of another kind, or a margin chart does not have three tags.
        """
        self._add(_custom_scalars.custom_scalars(layout))

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Mapping[str, Any] | None = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds meshes or clouds of points in space.

        Args:
            tag: The name of the series.
            vertices: The coordinates, of the shape (batch, number, 3).
            colors: The colour of each vertex, in 0..255, of the same shape.
            faces: The indices of the vertices of each triangle, of the shape (batch, number, 3).
            config_dict: Classes of three.js and their settings: camera, lights and so on.
            global_step: The step.
            walltime: The time.

        Raises:
            ValueError: If an array does not have three dimensions.
        """
        self._add(_tensors.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def flush(self) -> None:
        """Waits until the files have everything that was added.

        Raises:
            OSError: If records could not be written.
        """
        with contextlib.ExitStack() as stack:  # calls all of them, whichever raises
            for writer in list((self.all_writers or {}).values()):
                stack.callback(writer.flush)

    def close(self) -> None:
        """Writes what is left and closes the files. What is added later goes to new files in the same folders."""
        with opening:
            writers, self.file_writer, self.all_writers = self.all_writers or {}, None, None
        with contextlib.ExitStack() as stack:
            for writer in writers.values():
                stack.callback(writer.close)

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
