//! The pace of frames with new data: high enough to look live, but low enough to leave the cores to the program under
//! observation.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// Least time between frames for new data: 30 per second.
const LEAST: Duration = Duration::from_millis(33);
/// The same with a software renderer, whose threads work longer than the frame's own time shows.
const LEAST_IN_SOFTWARE: Duration = Duration::from_millis(100);
/// Names of software renderers: Mesa's, Chromium's, Windows'.
const SOFTWARE: [&str; 5] = ["llvmpipe", "softpipe", "swrast", "SwiftShader", "GDI Generic"];
/// Greatest time between frames for new data, however slow drawing is.
const MOST: Duration = Duration::from_millis(200);
/// Pause after a frame as a multiple of the frame's time: a quarter of a core where drawing is slow (without a GPU),
/// next to nothing where it is fast.
const PAUSE_PER_WORK: f32 = 3.0;

/// The pace of frames, shared by the window, which measures it, and the threads that load data. It does not delay
/// frames for input, which the window system requests.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// Smoothed time that a frame takes, µs.
    frame_us: Arc<AtomicU32>,
    is_software: bool,
}

impl Pace {
    /// The pace for a renderer by its name (OpenGL's `GL_RENDERER`).
    pub fn of_renderer(name: &str) -> Self {
        Self { is_software: SOFTWARE.iter().any(|software| name.contains(software)), ..Self::default() }
    }

    /// Notes the time that a frame took.
    pub fn frame_took(&self, seconds: f32) {
        let us = (seconds.clamp(0.0, 10.0) * 1e6) as u32;
        let before = self.frame_us.load(Ordering::Relaxed);
        self.frame_us.store(before - before / 4 + us / 4, Ordering::Relaxed);
    }

    /// Time to wait before the next frame.
    pub fn pause(&self) -> Duration {
        let work = Duration::from_micros(u64::from(self.frame_us.load(Ordering::Relaxed)));
        let least = if self.is_software { LEAST_IN_SOFTWARE } else { LEAST };
        work.mul_f32(PAUSE_PER_WORK).clamp(least, MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_drawing_is_done_less_often() {
        let pace = Pace::default();
        assert_eq!(pace.pause(), LEAST);
        for _ in 0..40 {
            pace.frame_took(0.002);
        }
        assert_eq!(pace.pause(), LEAST, "2 ms of 33");
        for _ in 0..40 {
            pace.frame_took(0.030);
        }
        let pause = pace.pause().as_millis();
        assert!((85..=90).contains(&pause), "three times 30 ms: {pause}");
        let software = Pace::of_renderer("llvmpipe (LLVM 19.1.7, 256 bits)");
        assert_eq!(software.pause(), LEAST_IN_SOFTWARE);
        assert_eq!(Pace::of_renderer("Mesa Intel(R) UHD Graphics 620").pause(), LEAST);
        pace.frame_took(f32::MAX);
        assert_eq!(pace.pause(), MOST);
    }
}
