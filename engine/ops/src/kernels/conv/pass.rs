//! A pass of windows over data: what convolutions, and the gradients that lead back through them, have in common.
//!
//! Forward, the window slides over the input. Backwards, each input pixel gathers from the output pixels whose windows
//! it lay in, through the same elements of the filter: with a stride, pixels that leave the same remainder make one
//! pass, each with the part of the window that reaches them.

use super::tile::{ROWS, TileType};
use engine_core::dtype::Element;
use engine_core::window::{Axis, WindowGeometry};

/// One spatial dimension of a pass.
#[derive(Debug, Clone)]
pub(super) struct PassAxis {
    /// Positions computed.
    pub count: usize,
    /// Where the first position's window begins in the source; less than 0: in the padding.
    start: isize,
    /// From position to position, in the source.
    step: usize,
    /// The window's elements that take part, with their distances from the window's begin, which ascend.
    taps: Vec<(usize, usize)>,
    /// The source's length.
    source: usize,
    /// Where the first position lies in the output, the step there, and the output's length.
    out: (usize, usize, usize),
}

impl PassAxis {
    /// Windows over the input.
    fn forward(axis: &Axis) -> PassAxis {
        PassAxis {
            count: axis.output,
            start: -(axis.before as isize),
            step: axis.stride,
            taps: (0..axis.window).map(|k| (k, k * axis.dilation)).collect(),
            source: axis.input,
            out: (0, 1, axis.output),
        }
    }

    /// From the output's gradient back to the input: a pass for each remainder of the input's positions.
    fn backward(axis: &Axis) -> Vec<PassAxis> {
        let stride = axis.stride;
        let of = |first: usize| {
            let reach = |k: usize| (first + axis.before) as isize - (k * axis.dilation) as isize;
            let reaching = (0..axis.window).rev().filter(|k| reach(*k) % stride as isize == 0);
            let taps: Vec<(usize, isize)> = reaching.map(|k| (k, reach(k) / stride as isize)).collect();
            let start = taps.first().map_or(0, |t| t.1);
            PassAxis {
                count: (axis.input - first).div_ceil(stride),
                start,
                step: 1,
                taps: taps.iter().map(|(k, at)| (*k, (at - start) as usize)).collect(),
                source: axis.output,
                out: (first, stride, axis.input),
            }
        };
        (0..stride.min(axis.input)).map(of).collect()
    }

    /// How far `n` neighbouring positions' windows reach.
    fn reach(&self, n: usize) -> usize {
        n.saturating_sub(1) * self.step + self.taps.last().map_or(0, |t| t.1) + 1
    }

    /// Whether all windows lie within the source.
    fn is_inside(&self) -> bool {
        self.start >= 0 && self.start as usize + self.reach(self.count) <= self.source
    }

    fn place(&self, i: usize) -> usize {
        self.out.0 + i * self.out.1
    }
}

/// A pass over all images.
#[derive(Debug, Clone)]
pub(super) struct Pass {
    /// Images.
    pub batch: usize,
    /// Depth, height, width.
    pub axes: [PassAxis; 3],
    /// Groups of channels, each with its part of the filter.
    pub groups: usize,
    /// Channels of the source, of all groups.
    pub channels: usize,
    /// Channels of the output, of all groups.
    pub out_channels: usize,
}

/// Pixels computed together: lines of one plane of one image, or whole images.
#[derive(Debug, Clone)]
pub(super) struct Block {
    images: std::ops::Range<usize>,
    plane: usize,
    lines: std::ops::Range<usize>,
}

/// How a pass is cut into blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocks {
    images: usize,
    lines: usize,
    /// Their number.
    pub n: usize,
}

/// Where a block's windows lie in memory.
pub(super) struct Region<T> {
    /// The begin of the first window.
    pub data: *const T,
    /// Of each pixel, where its window begins.
    pub pixels: Vec<usize>,
    /// Of each run of a window's elements, its begin in the window.
    pub runs: Vec<usize>,
}

/// Elements of a block's data that stay in the second cache together with a filter's panel.
const BLOCK: usize = 48 << 10;
/// Pixels enough that a block's last tile does not count.
const PIXELS: usize = 256;

/// Pixels whose gradients stay in the first cache together with the windows' elements that a tile takes.
const FILTER_PIXELS: usize = 128;

impl Pass {
    /// The convolution itself.
    pub fn forward(g: &WindowGeometry) -> Pass {
        Pass {
            batch: g.batch,
            axes: g.axes.each_ref().map(PassAxis::forward),
            groups: g.groups(),
            channels: g.channels,
            out_channels: g.out_channels,
        }
    }

    /// The passes that gather the input's gradient.
    pub fn backward(g: &WindowGeometry) -> Vec<Pass> {
        let [z, y, x] = g.axes.each_ref().map(PassAxis::backward);
        let mut passes = Vec::with_capacity(z.len() * y.len() * x.len());
        for z in &z {
            for y in &y {
                passes.extend(x.iter().map(|x| Pass {
                    batch: g.batch,
                    axes: [z.clone(), y.clone(), x.clone()],
                    groups: g.groups(),
                    channels: g.out_channels,
                    out_channels: g.channels,
                }));
            }
        }
        passes
    }

    /// Whether nothing reaches the output, which is zero then.
    pub fn is_empty(&self) -> bool {
        self.axes.iter().any(|a| a.taps.is_empty())
    }

    /// Channels of the source in one group.
    pub fn group_channels(&self) -> usize {
        self.channels / self.groups
    }

    /// Whether a window's elements along a line lie side by side.
    fn whole_lines(&self) -> bool {
        self.groups == 1 && self.axes[2].taps.windows(2).all(|t| t[1].1 == t[0].1 + 1)
    }

    /// Elements that lie side by side in a window, and the number of such runs.
    pub fn runs(&self) -> (usize, usize) {
        let [z, y, x] = self.axes.each_ref().map(|a| a.taps.len());
        if self.whole_lines() { (x * self.channels, z * y) } else { (self.group_channels(), z * y * x) }
    }

    /// The window's elements in the order of the runs, as positions in the whole window of these sizes.
    pub fn window_elements(&self, sizes: [usize; 3]) -> Vec<usize> {
        let [z, y, x] = &self.axes;
        let mut all = Vec::with_capacity(z.taps.len() * y.taps.len() * x.taps.len());
        for (kz, _) in &z.taps {
            for (ky, _) in &y.taps {
                all.extend(x.taps.iter().map(|(kx, _)| (kz * sizes[1] + ky) * sizes[2] + kx));
            }
        }
        all
    }

    /// Whether windows can be read from the source itself.
    fn is_inside(&self) -> bool {
        self.axes.iter().all(PassAxis::is_inside)
    }

    /// Cuts the pass for this many workers.
    pub fn blocks(&self, n_workers: usize) -> Blocks {
        let [z, y, x] = &self.axes;
        let line = x.reach(x.count) * self.channels * z.reach(1);
        let plane = y.reach(y.count) * line;
        let wanted = 4 * n_workers;
        let (mut images, mut lines) = (1, y.count);
        if z.count == 1 && plane <= BLOCK {
            images = (PIXELS / (y.count * x.count).max(1)).clamp(1, BLOCK / plane.max(1));
            images = images.min(self.batch / wanted).max(1);
        } else {
            let room = (BLOCK / line.max(1)).saturating_sub(y.reach(1)) / y.step + 1;
            lines = room.clamp(1, y.count.max(1));
        }
        if images == 1 && self.batch * z.count * y.count.div_ceil(lines.max(1)) < wanted {
            let per_plane = wanted.div_ceil((self.batch * z.count).max(1));
            lines = lines.min(y.count.div_ceil(per_plane)).max(1);
        }
        let lines = lines.max(1);
        Blocks { images, lines, n: self.batch.div_ceil(images) * z.count * y.count.div_ceil(lines) }
    }

    /// Cuts the pass into blocks of about [`FILTER_PIXELS`], for the filter's gradient.
    pub fn pixel_blocks(&self) -> Blocks {
        let [z, y, x] = &self.axes;
        let (line, plane) = (x.count.max(1), (y.count * x.count).max(1));
        let images = if z.count == 1 { (FILTER_PIXELS / plane).clamp(1, self.batch.max(1)) } else { 1 };
        // Parts of about equal length.
        let parts = (y.count * line).div_ceil(FILTER_PIXELS).max(1);
        let lines = if images > 1 { y.count } else { y.count.div_ceil(parts) }.max(1);
        Blocks { images, lines, n: self.batch.div_ceil(images) * z.count * y.count.div_ceil(lines) }
    }

    /// Block `i`.
    pub fn block(&self, blocks: &Blocks, i: usize) -> Block {
        let per_plane = self.axes[1].count.div_ceil(blocks.lines);
        let (i, part) = (i / per_plane, i % per_plane);
        let (group, plane) = (i / self.axes[0].count, i % self.axes[0].count);
        let (image, line) = (group * blocks.images, part * blocks.lines);
        Block {
            images: image..(image + blocks.images).min(self.batch),
            plane,
            lines: line..(line + blocks.lines).min(self.axes[1].count),
        }
    }

    /// Pixels of a block.
    pub fn n_pixels(&self, block: &Block) -> usize {
        block.images.len() * block.lines.len() * self.axes[2].count
    }

    /// Where the block's pixels lie in the output.
    pub fn places(&self, block: &Block) -> Vec<usize> {
        let [z, y, x] = &self.axes;
        let mut places = Vec::with_capacity(self.n_pixels(block));
        for image in block.images.clone() {
            let plane = image * z.out.2 + z.place(block.plane);
            for line in block.lines.clone() {
                let line = (plane * y.out.2 + y.place(line)) * x.out.2;
                places.extend((0..x.count).map(|i| (line + x.place(i)) * self.out_channels));
            }
        }
        places
    }

    /// Elements that [`Pass::region`] may copy for one block.
    pub fn room(&self, blocks: &Blocks, copy: bool) -> usize {
        if !copy && self.is_inside() {
            return 0;
        }
        let [z, y, x] = &self.axes;
        blocks.images * z.reach(1) * y.reach(blocks.lines) * x.reach(x.count) * self.channels + ROWS
    }

    /// Where the block's windows lie: in the source itself, or (where windows reach into the padding, or `room` is
    /// given without need) in `room`, copied with zeros around it.
    pub fn region<T: Element + Default>(&self, block: &Block, source: &[T], room: &mut [T]) -> Region<T> {
        let [z, y, x] = &self.axes;
        let channels = self.channels;
        // Origin of the first window, and the strides of line, plane and image.
        let (data, line, plane, image) = match room.is_empty() {
            true => {
                let (line, plane) = (x.source * channels, y.source * x.source * channels);
                let image = z.source * plane;
                let begin = [z, y, x].map(|a| a.start.max(0) as usize);
                let first = block.images.start * image
                    + (begin[0] + block.plane * z.step) * plane
                    + (begin[1] + block.lines.start * y.step) * line
                    + begin[2] * channels;
                (source.as_ptr().wrapping_add(first), line, plane, image)
            }
            false => {
                self.copy(block, source, room);
                let line = x.reach(x.count) * channels;
                let plane = y.reach(block.lines.len()) * line;
                (room.as_ptr(), line, plane, z.reach(1) * plane)
            }
        };
        let mut pixels = Vec::with_capacity(self.n_pixels(block));
        for i in 0..block.images.len() {
            for j in 0..block.lines.len() {
                pixels.extend((0..x.count).map(|k| i * image + j * y.step * line + k * x.step * channels));
            }
        }
        let x_taps = if self.whole_lines() { &x.taps[..1] } else { &x.taps[..] };
        let mut runs = Vec::with_capacity(z.taps.len() * y.taps.len() * x_taps.len());
        for (_, kz) in &z.taps {
            for (_, ky) in &y.taps {
                runs.extend(x_taps.iter().map(|(_, kx)| kz * plane + ky * line + kx * channels));
            }
        }
        Region { data, pixels, runs }
    }

    /// Copies what the block's windows reach, with zeros where there is no data.
    fn copy<T: Element + Default>(&self, block: &Block, source: &[T], room: &mut [T]) {
        let [z, y, x] = &self.axes;
        let (channels, line) = (self.channels, x.source * self.channels);
        // Along a line: zeros, data, zeros.
        let length = x.reach(x.count);
        let before = x.start.min(0).unsigned_abs().min(length);
        let skipped = x.start.max(0) as usize;
        let within = x.source.saturating_sub(skipped).min(length - before);
        let mut lines = room.chunks_exact_mut((length * channels).max(1));
        for image in block.images.clone() {
            for dz in 0..z.reach(1) {
                let plane = inside(z.start + (block.plane * z.step + dz) as isize, z.source);
                for dy in 0..y.reach(block.lines.len()) {
                    let at = inside(y.start + (block.lines.start * y.step + dy) as isize, y.source);
                    let Some(to) = lines.next() else { return };
                    let Some((plane, at)) = plane.zip(at) else {
                        to.fill(T::default());
                        continue;
                    };
                    let from = ((image * z.source + plane) * y.source + at) * line + skipped * channels;
                    to[..before * channels].fill(T::default());
                    let (data, after) = to[before * channels..].split_at_mut(within * channels);
                    data.copy_from_slice(&source[from..from + data.len()]);
                    after.fill(T::default());
                }
            }
        }
    }
}

fn inside(at: isize, length: usize) -> Option<usize> {
    usize::try_from(at).ok().filter(|at| *at < length)
}

/// Where a row of a filter lies: the element of each channel of the output.
#[derive(Clone, Copy)]
pub(super) struct FilterRow {
    /// The first channel's.
    pub first: usize,
    /// From channel to channel.
    pub step: usize,
}

/// A filter packed for a pass: for each panel of output channels, rows of the window's elements.
pub(super) fn pack<T: TileType>(
    panels: &[super::tile::Panel],
    lanes: usize,
    n_elements: usize,
    filter: &[T],
    room: &mut [T],
    row_of: impl Fn(usize) -> FilterRow,
) {
    for panel in panels {
        let width = panel.width * lanes;
        let rows = room[panel.at..][..n_elements * width].chunks_exact_mut(width);
        for (k, row) in rows.enumerate() {
            let FilterRow { first, step } = row_of(k);
            let (values, zeros) = row.split_at_mut(panel.n);
            let from = &filter[first + panel.first * step..];
            match step {
                1 => values.copy_from_slice(&from[..panel.n]),
                _ => values.iter_mut().zip(from.iter().step_by(step)).for_each(|(v, from)| *v = *from),
            }
            zeros.fill(T::default());
        }
    }
}
