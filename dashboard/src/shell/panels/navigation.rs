//! Undo, redo and deep links: addresses of what is shown.

use super::tabs::Tabs;
use crate::{Address, Data, Selection, data::Status};
use std::path::{Path, PathBuf};
use ui::address::Params;
use ui::history::History;

/// Addresses behind and ahead of the current one.
#[derive(Default)]
pub struct Navigation {
    history: History<Address>,
    /// An address to go to once everything is read.
    wanted: Option<Address>,
    /// Frames for which changes follow from an address, not from the user.
    settling: u32,
}

/// Frames that panels take to follow an address.
const SETTLE_FRAMES: u32 = 4;

impl Navigation {
    /// Starts with an address to go to, if any.
    pub fn new(wanted: Option<Address>) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// Goes to the address that the window was opened with, once there is something to show.
    pub fn arrive(&mut self, tabs: &mut Tabs, data: &Data, selection: &mut Selection) -> bool {
        let is_read = !data.sources.is_empty() && data.sources.iter().all(|s| s.status != Status::Loading);
        if !is_read {
            return false;
        }
        let Some(address) = self.wanted.take() else { return false };
        self.go_to(&address, tabs, selection);
        true
    }

    /// Records what is shown in this frame.
    pub fn observe(&mut self, ctx: &egui::Context, tabs: &Tabs, data: &Data, selection: &Selection) {
        let now = address(tabs, data, selection);
        if self.settling > 0 || data.sources.iter().any(|s| s.status == Status::Loading) {
            self.settling = self.settling.saturating_sub(1);
            self.history.replace(now);
            if self.settling > 0 {
                ctx.request_repaint();
            }
        } else if self.history.observe(now, ctx.input(|i| i.time)) {
            ctx.request_repaint_after_secs(ui::history::SETTLED_S as f32);
        }
    }

    /// Goes one step back or forward; returns whether there was one.
    pub fn step(&mut self, back: bool, tabs: &mut Tabs, selection: &mut Selection) -> bool {
        let address = if back { self.history.undo() } else { self.history.redo() };
        if let Some(address) = &address {
            self.go_to(address, tabs, selection);
        }
        address.is_some()
    }

    fn go_to(&mut self, address: &Address, tabs: &mut Tabs, selection: &mut Selection) {
        self.settling = SETTLE_FRAMES;
        // From the last to the first: the first one ends up in front.
        for (kind, params) in address.panels.iter().rev() {
            tabs.activate(*kind);
            if let Some(view) = tabs.view_mut(*kind) {
                view.go_to(params);
            }
        }
        let shared = &address.shared;
        selection.node.select(shared.get("node").map(Into::into));
        selection.op.select(shared.get("op").map(Into::into));
        selection.runs.filter.set(shared.get("runs").unwrap_or_default());
    }
}

/// The address of what is shown now.
pub fn address(tabs: &Tabs, data: &Data, selection: &Selection) -> Address {
    let mut shared = Params::default();
    shared.set_some("node", selection.node.get());
    shared.set_some("op", selection.op.get());
    shared.set_some("runs", Some(selection.runs.filter.text()).filter(|t| !t.is_empty()));
    let of = |kind| Some((kind, tabs.view(kind)?.address(data)));
    let address = Address { panels: tabs.visible().into_iter().filter_map(of).collect(), shared };
    debug_assert!(address.is_accepted(), "{address}: a panel writes what an address does not accept");
    address
}

/// The command line that shows `paths` at `address`, for a POSIX shell.
pub fn command_line(paths: &[PathBuf], address: &Address) -> String {
    let mut words = vec!["stepscope".to_owned(), "view".to_owned()];
    words.extend(paths.iter().map(|path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        quoted(&path)
    }));
    words.extend(["--at".to_owned(), quoted(Path::new(&address.to_string()))]);
    words.join(" ")
}

fn quoted(word: &Path) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_survive_a_shell() {
        let paths = [PathBuf::from("/tmp/it's here/run 1"), PathBuf::from("/plain")];
        let mut address = Address::default();
        address.shared.set("node", "a'b c");
        let line = command_line(&paths, &address);
        let out = std::process::Command::new("sh").arg("-c").arg(format!("printf '%s\\n' {line}")).output().unwrap();
        let words: Vec<_> = std::str::from_utf8(&out.stdout).unwrap().lines().collect();
        assert_eq!(words[..5], ["stepscope", "view", "/tmp/it's here/run 1", "/plain", "--at"]);
        assert_eq!(words[5].parse::<Address>(), Ok(address));
    }
}
