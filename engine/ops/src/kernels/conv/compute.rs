//! Convolutions and their gradients as passes of tiles, block by block, over the workers.

use super::pass::{FilterRow, Pass, pack};
use super::tile::{FilterRows, Panel, ROWS, Taps, TileType, panels};
use crate::kernels::support::{DisjointMut, unique_slice};
use crate::kernels::{KernelContext, KernelError};
use engine_core::shape::Shape;
use engine_core::window::WindowGeometry;

/// Operations per nanosecond that cost estimates assume.
const FLOPS_PER_NS: usize = 150;

/// The convolution of `input` with `filter`.
pub(super) fn forward<T: TileType>(
    g: &WindowGeometry,
    c: &KernelContext<'_>,
    input: &[T],
    filter: &[T],
    out: &mut [T],
) -> Result<(), KernelError> {
    let (each, to) = (g.filter_channels, g.out_channels);
    let group_to = to / g.groups();
    let row =
        |group: usize, tap: usize, k: usize| FilterRow { first: (tap * each + k) * to + group * group_to, step: 1 };
    run(g, &Pass::forward(g), c, (input, filter), out, &row)
}

/// The gradient of the input.
pub(super) fn input_gradient<T: TileType>(
    g: &WindowGeometry,
    c: &KernelContext<'_>,
    filter: &[T],
    gradient: &[T],
    out: &mut [T],
) -> Result<(), KernelError> {
    let (each, to) = (g.filter_channels, g.out_channels);
    let group_to = to / g.groups();
    let row =
        |group: usize, tap: usize, k: usize| FilterRow { first: tap * each * to + group * group_to + k, step: to };
    let passes = Pass::backward(g);
    if g.out_pixels() == 0 || passes.iter().any(Pass::is_empty) {
        out.fill(T::default());
    }
    for pass in passes.iter().filter(|p| !p.is_empty() && g.out_pixels() > 0) {
        run(g, pass, c, (gradient, filter), out, &row)?;
    }
    Ok(())
}

/// Runs a pass: each group's filter is packed, and blocks of pixels are computed by tiles.
fn run<T: TileType>(
    g: &WindowGeometry,
    pass: &Pass,
    c: &KernelContext<'_>,
    (source, filter): (&[T], &[T]),
    out: &mut [T],
    row: &dyn Fn(usize, usize, usize) -> FilterRow,
) -> Result<(), KernelError> {
    let (from, to) = (pass.group_channels(), pass.out_channels / pass.groups);
    let taps = pass.window_elements(g.axes.map(|a| a.window));
    let n_elements = taps.len() * from;
    if n_elements == 0 {
        out.fill(T::default());
        return Ok(());
    }
    let (lanes, max_width) = T::lanes();
    let panels = panels(to, n_elements, lanes, max_width);
    let blocks = pass.blocks(c.sharder.n_workers());
    let packed_len = panels.last().map_or(0, |p| p.at + n_elements * p.width * lanes);
    let mut packed = c.room::<T>(Shape::new(&[packed_len]))?;
    let scratch = Scratch::<T>::new(pass.room(&blocks, false));
    let dst = DisjointMut::new(out);
    for group in 0..pass.groups {
        let room = unique_slice::<T>(&mut packed)?;
        pack(&panels, lanes, n_elements, filter, room, |k| row(group, taps[k / from], k % from));
        let packed = packed.slice::<T>()?.as_ptr();
        let work = Filter { packed, panels: &panels, group };
        let pixels = if blocks.n > 0 { pass.n_pixels(&pass.block(&blocks, 0)) } else { 0 };
        let cost = 2 * n_elements * to * pixels / FLOPS_PER_NS;
        let shared = &work;
        c.sharder.parallel_for(blocks.n, cost.max(1) as u64, &|range| {
            scratch.with(|scratch| {
                for i in range.clone() {
                    shared.block(pass, &pass.block(&blocks, i), source, scratch, &dst);
                }
            });
        });
    }
    Ok(())
}

/// A group's packed filter.
struct Filter<'a, T> {
    packed: *const T,
    panels: &'a [Panel],
    group: usize,
}
// SAFETY: it is only read.
unsafe impl<T: Sync> Sync for Filter<'_, T> {}

impl<T: TileType> Filter<'_, T> {
    fn block(
        &self,
        pass: &Pass,
        block: &super::pass::Block,
        source: &[T],
        scratch: &mut [T],
        dst: &DisjointMut<'_, T>,
    ) {
        let region = pass.region(block, source, scratch);
        let places = pass.places(block);
        let data = region.data.wrapping_add(self.group * pass.group_channels());
        let taps = Taps { data, runs: &region.runs, depth: pass.runs().0 };
        let out = dst.at(self.group * (pass.out_channels / pass.groups));
        for panel in self.panels {
            // SAFETY: the region has the windows of all the block's pixels; the filter is packed for these panels;
            // the places are pixels of the output, which has `out_channels` elements at each, of which this group and
            // panel have theirs. Blocks of other shards have other pixels.
            unsafe { T::forward(taps, &region.pixels, self.packed, *panel, out, &places) };
        }
    }
}

/// Memory for a block's copied data, for as many shards as run at once, each of which returns it.
struct Scratch<T> {
    free: parking_lot::Mutex<Vec<Vec<T>>>,
    n: usize,
}

impl<T: TileType> Scratch<T> {
    fn new(n: usize) -> Scratch<T> {
        Scratch { free: parking_lot::Mutex::default(), n }
    }

    /// Calls `f` with `n` elements that nobody else has.
    fn with(&self, f: impl FnOnce(&mut [T])) {
        let room = self.free.lock().pop();
        let mut room = room.unwrap_or_else(|| vec![T::default(); self.n]);
        f(&mut room);
        self.free.lock().push(room);
    }
}

/// The gradient of the filter: sums over pixels, of which each shard takes some of the filter's rows.
pub(super) fn filter_gradient<T: TileType>(
    g: &WindowGeometry,
    c: &KernelContext<'_>,
    input: &[T],
    gradient: &[T],
    out: &mut [T],
) -> Result<(), KernelError> {
    out.fill(T::default());
    let pass = Pass::forward(g);
    let (depth, n_runs) = pass.runs();
    if pass.is_empty() || depth == 0 || g.out_pixels() == 0 || g.batch == 0 {
        return Ok(());
    }
    let group_to = g.out_channels / g.groups();
    let (lanes, max_width) = T::lanes();
    let panels = panels(group_to, 0, lanes, max_width);
    // Each worker takes its part of the rows through all blocks.
    let blocks = pass.pixel_blocks();
    let per_run = depth.div_ceil(ROWS);
    let n_tiles = n_runs * per_run;
    // Rows are read by whole tiles.
    let copied = pass.room(&blocks, !depth.is_multiple_of(ROWS));
    let scratch = Scratch::<T>::new(copied);
    let width = panels.iter().map(|p| p.width).max().unwrap_or(0) * lanes;
    let widest = if blocks.n > 0 { pass.n_pixels(&pass.block(&blocks, 0)) * width } else { 0 };
    let columns = Scratch::<T>::new(widest);
    let dst = DisjointMut::new(out);
    let work = FilterGradient { g, pass: &pass, panels: &panels, lanes, gradient, dst: &dst, per_run };
    let cost = 2 * ROWS * group_to * g.out_pixels().saturating_mul(g.batch) / FLOPS_PER_NS;
    for group in 0..g.groups() {
        c.sharder.parallel_for(n_tiles, cost.max(1) as u64, &|tiles| {
            scratch.with(|scratch| {
                columns.with(|columns| {
                    for i in 0..blocks.n {
                        let block = pass.block(&blocks, i);
                        let region = pass.region(&block, input, scratch);
                        work.block(group, &block, &region, tiles.clone(), columns);
                    }
                });
            });
        });
    }
    Ok(())
}

struct FilterGradient<'a, T> {
    g: &'a WindowGeometry,
    pass: &'a Pass,
    panels: &'a [Panel],
    lanes: usize,
    gradient: &'a [T],
    dst: &'a DisjointMut<'a, T>,
    /// Tiles of each run.
    per_run: usize,
}

impl<T: TileType> FilterGradient<'_, T> {
    fn block(
        &self,
        group: usize,
        block: &super::pass::Block,
        region: &super::pass::Region<T>,
        tiles: std::ops::Range<usize>,
        columns: &mut [T],
    ) {
        let (depth, to) = (self.pass.runs().0, self.g.out_channels);
        let group_to = to / self.g.groups();
        // A block's pixels lie side by side in the output.
        let first = self.pass.places(block).first().copied().unwrap_or(0);
        for panel in self.panels {
            let column = group * group_to + panel.first;
            // Side by side, the gradients of all pixels stay in the first cache.
            let width = panel.width * self.lanes;
            for (p, row) in columns.chunks_exact_mut(width).take(region.pixels.len()).enumerate() {
                row[..panel.n].copy_from_slice(&self.gradient[first + p * to + column..][..panel.n]);
                row[panel.n..].fill(T::default());
            }
            for tile in tiles.clone() {
                let (run, row) = (tile / self.per_run, tile % self.per_run * ROWS);
                let from = region.runs[run] + group * self.pass.group_channels() + row;
                let rows = FilterRows {
                    a: region.data.wrapping_add(from),
                    pixels: &region.pixels,
                    b: columns.as_ptr(),
                    stride: width,
                    out: self.dst.at((run * depth + row) * to + column),
                    out_stride: to,
                    rows: ROWS.min(depth - row),
                    n: panel.n,
                    width: panel.width,
                };
                // SAFETY: the region has the windows of all the block's pixels and, where a run is no multiple of
                // `ROWS`, is a copy with as much room behind it; `b` has whole vectors for each pixel; the rows and
                // columns of the filter's gradient are this shard's.
                unsafe { T::filter(&rows) };
            }
        }
    }
}
