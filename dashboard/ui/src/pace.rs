//! The pace of frames with new data: high enough to look live, low enough to leave the cores to the traced program.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// Least time between frames for new data: 30 per second.
const MIN_PAUSE: Duration = Duration::from_millis(33);
/// Least time between frames with a software renderer, whose threads work longer than the measured frame time.
const MIN_PAUSE_IN_SOFTWARE: Duration = Duration::from_millis(100);
/// Names of software renderers: Mesa's, Chromium's, Windows'.
const SOFTWARE_RENDERERS: [&str; 5] = ["llvmpipe", "softpipe", "swrast", "SwiftShader", "GDI Generic"];
/// Greatest time between frames for new data, however slow drawing is.
const MAX_PAUSE: Duration = Duration::from_millis(200);
/// Pause after a frame as a multiple of the frame's time: a quarter of a core where drawing is slow (without a GPU),
/// next to nothing where it is fast.
const PAUSE_PER_WORK: f32 = 3.0;

/// The pace of frames, shared by the window, which measures frames, and the threads that load data. Frames for input,
/// which the window system requests, are not delayed.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// Smoothed time that a frame takes, µs.
    frame_us: Arc<AtomicU32>,
    is_software: bool,
}

impl Pace {
    /// The pace for a renderer by its name (OpenGL's `GL_RENDERER`).
    pub fn of_renderer(name: &str) -> Self {
        Self { is_software: SOFTWARE_RENDERERS.iter().any(|renderer| name.contains(renderer)), ..Self::default() }
    }

    /// Records the time that a frame took.
    pub fn record_frame(&self, seconds: f32) {
        let us = (seconds.clamp(0.0, 10.0) * 1e6) as u32;
        let smoothed = self.frame_us.load(Ordering::Relaxed);
        self.frame_us.store(smoothed - smoothed / 4 + us / 4, Ordering::Relaxed);
    }

    /// Time to wait before the next frame.
    pub fn pause(&self) -> Duration {
        let frame_time = Duration::from_micros(u64::from(self.frame_us.load(Ordering::Relaxed)));
        let min_pause = if self.is_software { MIN_PAUSE_IN_SOFTWARE } else { MIN_PAUSE };
        frame_time.mul_f32(PAUSE_PER_WORK).clamp(min_pause, MAX_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_drawing_is_done_less_often() {
        let pace = Pace::default();
        assert_eq!(pace.pause(), MIN_PAUSE);
        for _ in 0..40 {
            pace.record_frame(0.002);
        }
        assert_eq!(pace.pause(), MIN_PAUSE, "2 ms of 33");
        for _ in 0..40 {
            pace.record_frame(0.030);
        }
        let pause = pace.pause().as_millis();
        assert!((85..=90).contains(&pause), "three times 30 ms: {pause}");
        let software = Pace::of_renderer("llvmpipe (LLVM 19.1.7, 256 bits)");
        assert_eq!(software.pause(), MIN_PAUSE_IN_SOFTWARE);
        assert_eq!(Pace::of_renderer("Mesa Intel(R) UHD Graphics 620").pause(), MIN_PAUSE);
        pace.record_frame(f32::MAX);
        assert_eq!(pace.pause(), MAX_PAUSE);
    }
}
