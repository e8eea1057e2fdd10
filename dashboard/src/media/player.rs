//! Plays sounds through a program of the system, so that no sound library is linked: the first of [`PLAYERS`] that is
//! there. A pause stops the program; to go on, another one plays the rest.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

/// Programs that play a WAV file, with what comes before its name: `PipeWire`, `PulseAudio`, ALSA, `FFmpeg`, macOS.
const PLAYERS: [(&str, &[&str]); 5] = [
    ("pw-play", &[]),
    ("paplay", &[]),
    ("aplay", &["-q"]),
    ("ffplay", &["-nodisp", "-autoexit", "-loglevel", "error"]),
    ("afplay", &[]),
];

/// The program that plays, if there is one.
pub fn find() -> Option<(PathBuf, &'static [&'static str])> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let at = |name: &str| folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file());
    PLAYERS.iter().find_map(|(name, arguments)| Some((at(name)?, *arguments)))
}

/// A sound that plays. Dropping it ends it.
pub struct Playing {
    child: Child,
    file: PathBuf,
}

impl Playing {
    /// Plays a WAV file's contents.
    ///
    /// # Errors
    /// When it cannot be written for the program, or the program does not start.
    pub fn start((program, arguments): (&Path, &[&str]), wav: &[u8]) -> io::Result<Self> {
        let file = temporary("wav", wav)?;
        match quiet(program).args(arguments).arg(&file).spawn() {
            Ok(child) => Ok(Self { child, file }),
            Err(error) => {
                let _ = std::fs::remove_file(&file);
                Err(error)
            }
        }
    }

    /// Whether it still plays; once it does not, whether the program could play it.
    pub fn outcome(&mut self) -> Option<bool> {
        self.child.try_wait().ok().flatten().map(|status| status.success())
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        // It may have ended by itself; and the file may be gone: both are what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Shows a file with the program that the desktop has for it. The file stays for that program.
///
/// # Errors
/// When it cannot be written, or the desktop has no way to open files.
pub fn open_outside(extension: &str, bytes: &[u8]) -> io::Result<()> {
    let file = temporary(extension, bytes)?;
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut child = quiet(Path::new(opener)).arg(&file).spawn()?;
    // Reaps it; a desktop's opener returns at once.
    std::thread::spawn(move || drop(child.wait()));
    Ok(())
}

fn quiet(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A new file that nobody else has.
fn temporary(extension: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("stepscope-{}-{nth}.{extension}", std::process::id()));
        match std::fs::File::create_new(&path) {
            Ok(mut file) => {
                io::Write::write_all(&mut file, bytes)?;
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// `cat` plays to nowhere; `sleep` does not understand the file.
    #[test]
    fn a_program_plays_the_file_and_the_file_goes() {
        let start = |name: &str| Playing::start((Path::new(name), &[]), b"RIFF").unwrap();
        let wait = |mut playing: Playing| loop {
            if let Some(outcome) = playing.outcome() {
                return (outcome, playing.file.clone());
            }
            std::thread::yield_now();
        };
        let (is_played, file) = wait(start("cat"));
        assert!(is_played && !file.exists());
        assert!(!wait(start("sleep")).0);
        assert!(Playing::start((Path::new("/no/such/player"), &[]), b"").is_err());
    }
}
