//! A desktop without a screen: X server, window manager and accessibility bus, all private to one test.
//!
//! Everything is started on free addresses and ended on drop, so that tests run at the same time.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The running servers and the environment that programs on this desktop need.
pub struct Desktop {
    servers: Vec<Child>,
    env: Vec<(&'static str, String)>,
    runtime: tempfile::TempDir,
}

impl Desktop {
    /// Starts Xvfb at `width` x `height`, openbox and a session bus.
    ///
    /// # Panics
    /// When one of them does not start: the window tests need them all.
    pub fn start(width: u32, height: u32) -> Desktop {
        let runtime = tempfile::tempdir().expect("a private runtime folder");
        let screen = format!("{width}x{height}x24");
        let args = ["-displayfd", "1", "-screen", "0", screen.as_str(), "-nolisten", "tcp", "+extension", "GLX"];
        // Without -noreset the server begins anew when its last client leaves, and turns away who comes meanwhile.
        let args = args.into_iter().chain(["-noreset"]);
        let mut xvfb = spawn(Command::new("Xvfb").args(args).stdout(Stdio::piped()));
        let display = format!(":{}", first_line(&mut xvfb));
        let mut bus = Command::new("dbus-daemon");
        bus.args(["--session", "--nofork", "--print-address=1"])
            .env("XDG_RUNTIME_DIR", runtime.path())
            .env("DISPLAY", &display);
        let mut bus = spawn(bus.stdout(Stdio::piped()));
        let address = first_line(&mut bus);
        let env = vec![
            ("DISPLAY", display),
            ("DBUS_SESSION_BUS_ADDRESS", address),
            ("XDG_RUNTIME_DIR", runtime.path().display().to_string()),
            ("XDG_CONFIG_HOME", runtime.path().join("config").display().to_string()),
            ("XDG_DATA_HOME", runtime.path().join("data").display().to_string()),
            ("LIBGL_ALWAYS_SOFTWARE", "1".into()),
            ("WINIT_X11_SCALE_FACTOR", "1".into()),
        ];
        let mut desktop = Desktop { servers: vec![xvfb, bus], env, runtime };
        // On a busy machine the server names its display before it answers.
        desktop.wait_for("the X server", "getdisplaygeometry");
        let manager = spawn(desktop.command("openbox").stderr(Stdio::null()));
        desktop.servers.push(manager);
        // A window that opens before there is a window manager never gets the keyboard.
        desktop.wait_for("openbox", "get_desktop");
        desktop
    }

    /// Waits until what answers this question of xdotool's is there.
    fn wait_for(&self, what: &str, question: &str) {
        let answers = || {
            let mut ask = self.command("xdotool");
            ask.arg(question).stdout(Stdio::null()).stderr(Stdio::null());
            ask.status().is_ok_and(|status| status.success())
        };
        let answered = (0..300).any(|_| {
            answers() || {
                std::thread::sleep(Duration::from_millis(100));
                false
            }
        });
        assert!(answered, "{what} does not answer");
    }

    /// A command that runs on this desktop.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.envs(self.env.iter().cloned()).env_remove("WAYLAND_DISPLAY");
        command
    }

    /// The session bus, where the accessibility bus is found.
    pub fn bus_address(&self) -> &str {
        &self.env[1].1
    }

    /// Runs `xdotool ARGS`.
    ///
    /// # Panics
    /// When xdotool fails.
    pub fn xdotool(&self, args: &[&str]) {
        let status = self.command("xdotool").args(args).status().expect("xdotool starts");
        assert!(status.success(), "xdotool {args:?}");
    }

    /// Moves the pointer to a point of the screen and clicks there.
    pub fn click(&self, x: i32, y: i32) {
        self.xdotool(&["mousemove", &x.to_string(), &y.to_string()]);
        std::thread::sleep(Duration::from_millis(150));
        self.xdotool(&["click", "1"]);
        std::thread::sleep(Duration::from_millis(150));
    }

    /// Writes a PNG of the whole screen.
    ///
    /// # Panics
    /// When ImageMagick's import fails.
    pub fn screenshot(&self, path: &Path) {
        let status = self.command("import").args(["-window", "root"]).arg(path).status().expect("import starts");
        assert!(status.success(), "import {}", path.display());
    }

    /// A folder that goes with the desktop.
    pub fn scratch(&self) -> PathBuf {
        self.runtime.path().to_path_buf()
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        for server in self.servers.iter_mut().rev() {
            // Already gone is what we want.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let out: &mut dyn Read = child.stdout.as_mut().expect("stdout was piped");
    BufReader::new(out).read_line(&mut line).expect("the server says its address");
    assert!(!line.trim().is_empty(), "the server ended at once");
    line.trim().to_owned()
}
