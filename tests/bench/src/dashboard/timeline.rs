//! The timeline of a sealed trace, in the whole window: ten million slices, or `STEPSCOPE_BENCH_SLICES`.

use super::screen::{Screen, add_frames};
use crate::{
    report::{BenchError, Report},
    sealed,
};
use ::dashboard::app::App;

const FRAMES: usize = 40;
/// Each is 16 times as close as the one before.
const ZOOMS: [u32; 6] = [0, 4, 8, 12, 16, 20];

pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let (dir, label) = sealed::made()?;
    measure(report, &dir, &label)
}

/// A hundred million slices.
pub fn huge(report: &mut Report) -> Result<(), BenchError> {
    measure(report, &sealed::made_of(100_000_000)?, "100 M")
}

fn measure(report: &mut Report, dir: &tempfile::TempDir, label: &str) -> Result<(), BenchError> {
    let folder = dir.path().join("trace");
    let rss = sealed::rss_bytes();
    let first = Screen::window(&folder, "timeline").and_then(|mut screen| first_picture(&mut screen))?;
    report.add(format!("timeline {label}: first picture, file cache warm"), first, "ms");
    let mut screen = Screen::window(&folder, "timeline")?;
    let again = first_picture(&mut screen)?;
    report.add(format!("timeline {label}: first picture, again"), again, "ms");
    report.add(format!("timeline {label}: memory after the first picture"), mb(sealed::rss_bytes() - rss), "MB");
    zooms(report, label, &mut screen);
    report.add(format!("timeline {label}: memory at the end"), mb(sealed::rss_bytes() - rss), "MB");
    Ok(())
}

fn mb(bytes: i64) -> f64 {
    bytes as f64 / 1e6
}

fn first_picture(screen: &mut Screen<App>) -> Result<f64, BenchError> {
    screen.until("timeline", |_, says| says.iter().any(|s| s.starts_with("Timeline: 50 tracks")))
}

/// At each zoom, a pan of a fifth of the view to and fro, then closer and back: easing gives each frame a view of its own.
/// What a pan leaves on the screen stays drawn; another zoom draws everything anew.
fn zooms(report: &mut Report, label: &str, screen: &mut Screen<App>) {
    for zoom in ZOOMS {
        screen.key(egui::Key::Num0);
        screen.rest();
        for _ in 0..zoom {
            screen.key(egui::Key::W);
        }
        screen.rest();
        let mut by_turns = |keys: [egui::Key; 2]| {
            let took = (0..FRAMES).map(|i| screen.key(keys[i % 2])).collect();
            screen.rest();
            took
        };
        let moving = by_turns([egui::Key::D, egui::Key::A]);
        let zooming = by_turns([egui::Key::W, egui::Key::S]);
        let still = screen.frames(FRAMES);
        let case = format!("timeline {label}: frame at 1/{}", 1_u64 << zoom);
        add_frames(report, &format!("{case}, moving"), moving);
        add_frames(report, &format!("{case}, zooming"), zooming);
        add_frames(report, &format!("{case}, still"), still);
    }
}

/// The other panels that show traces: how long until they say something, and a still frame of that.
pub fn panels(report: &mut Report) -> Result<(), BenchError> {
    let (dir, label) = sealed::made()?;
    let folder = dir.path().join("trace");
    for (panel, sign) in [("ops", "MatMul"), ("bottlenecks", "Step times: ")] {
        let rss = sealed::rss_bytes();
        let mut screen = Screen::window(&folder, panel)?;
        let took = screen.until(panel, |_, says| says.iter().any(|s| s.contains(sign)))?;
        report.add(format!("{panel} {label}: first answer"), took, "ms");
        report.add(format!("{panel} {label}: memory"), mb(sealed::rss_bytes() - rss), "MB");
        screen.rest();
        add_frames(report, &format!("{panel} {label}: frame, still"), screen.frames(FRAMES));
    }
    Ok(())
}
