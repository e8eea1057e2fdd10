//! Plays sounds with a program of the system, so that no sound library is linked: the first of [`PLAYERS`] that is
//! installed. A pause ends the program; going on starts another one with the rest of the sound.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

/// Programs that play a WAV file, with their arguments before the file name: `PipeWire`, `PulseAudio`, ALSA, `FFmpeg`,
/// macOS.
const PLAYERS: [(&str, &[&str]); 5] = [
    ("pw-play", &[]),
    ("paplay", &[]),
    ("aplay", &["-q"]),
    ("ffplay", &["-nodisp", "-autoexit", "-loglevel", "error"]),
    ("afplay", &[]),
];

/// The first program that is installed.
pub fn find() -> Option<(PathBuf, &'static [&'static str])> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let at = |name: &str| folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file());
    PLAYERS.iter().find_map(|(name, arguments)| Some((at(name)?, *arguments)))
}

/// A sound that is being played. Dropping it stops the sound.
pub struct Playback {
    child: Child,
    file: PathBuf,
}

impl Playback {
    /// Plays the contents of a WAV file.
    ///
    /// # Errors
    /// When the file cannot be written or the program does not start.
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

    /// `None` while the sound plays; then whether the program succeeded.
    pub fn outcome(&mut self) -> Option<bool> {
        self.child.try_wait().ok().flatten().map(|status| status.success())
    }
}

impl Drop for Playback {
    fn drop(&mut self) {
        // Errors do not matter: the program may have ended already, and the file may be gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Opens a file with the desktop's program for it. The file stays, as the program may read it later.
///
/// # Errors
/// When the file cannot be written, or the desktop cannot open files.
pub fn open_outside(extension: &str, bytes: &[u8]) -> io::Result<()> {
    let file = temporary(extension, bytes)?;
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut child = quiet(Path::new(opener)).arg(&file).spawn()?;
    // Waits for the process, which returns at once, so that no zombie stays.
    std::thread::spawn(move || drop(child.wait()));
    Ok(())
}

fn quiet(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Writes a new temporary file.
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
        let start = |name: &str| Playback::start((Path::new(name), &[]), b"RIFF").unwrap();
        let wait = |mut playing: Playback| loop {
            if let Some(outcome) = playing.outcome() {
                return (outcome, playing.file.clone());
            }
            std::thread::yield_now();
        };
        let (is_played, file) = wait(start("cat"));
        assert!(is_played && !file.exists());
        assert!(!wait(start("sleep")).0);
        assert!(Playback::start((Path::new("/no/such/player"), &[]), b"").is_err());
    }
}
