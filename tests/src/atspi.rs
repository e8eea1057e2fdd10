//! The accessibility tree of a running program, read over D-Bus as a screen reader does (AT-SPI 2).

use std::time::Duration;

use zbus::blocking::{Connection, Proxy, connection::Builder};
use zbus::zvariant::{OwnedObjectPath, OwnedValue, Value};

const ACCESSIBLE: &str = "org.a11y.atspi.Accessible";

/// The connection to a desktop's accessibility bus.
pub struct Tree {
    bus: Connection,
    /// Keeps the session bus's setting alive.
    _session: Connection,
}

/// One node of the tree.
#[derive(Clone, Debug)]
pub struct Node {
    owner: String,
    path: String,
    /// Its accessible name (or its description or text, where it has no name).
    pub name: String,
    /// Its role as AT-SPI calls it: `push button`, `page tab`, `label`.
    pub role: String,
    /// How deep it lies below the desktop.
    pub depth: usize,
}

impl Tree {
    /// Connects, and shows programs that somebody listens: they expose no tree otherwise.
    ///
    /// # Errors
    /// When a bus cannot be reached.
    pub fn connect(session_address: &str) -> zbus::Result<Tree> {
        let session = Builder::address(session_address)?.build()?;
        let a11y = Proxy::new(&session, "org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus")?;
        let address: String = a11y.call("GetAddress", &())?;
        let status = Proxy::new(&session, "org.a11y.Bus", "/org/a11y/bus", "org.a11y.Status")?;
        status.set_property("IsEnabled", true)?;
        status.set_property("ScreenReaderEnabled", true)?;
        let bus = Builder::address(address.as_str())?.build()?;
        Ok(Tree { bus, _session: session })
    }

    /// Every node of every program on the desktop, parents before children.
    ///
    /// Nodes that go away while the tree is read are left out.
    pub fn nodes(&self) -> Vec<Node> {
        let root = ("org.a11y.atspi.Registry".to_owned(), "/org/a11y/atspi/accessible/root".to_owned());
        let mut stack = vec![(root.0, root.1, 0)];
        let mut found = Vec::new();
        while let Some((owner, path, depth)) = stack.pop() {
            let Ok(proxy) = self.proxy(&owner, &path, ACCESSIBLE) else { continue };
            let children: Vec<(String, OwnedObjectPath)> = proxy.call("GetChildren", &()).unwrap_or_default();
            for (owner, path) in children.into_iter().rev() {
                stack.push((owner, path.to_string(), depth + 1));
            }
            if depth > 0
                && let Some(node) = self.describe(&proxy, &owner, &path, depth)
            {
                found.push(node);
            }
        }
        found
    }

    fn describe(&self, proxy: &Proxy<'_>, owner: &str, path: &str, depth: usize) -> Option<Node> {
        let mut name: String = proxy.get_property("Name").ok()?;
        let role = role_name(proxy.call("GetRole", &()).ok()?).to_owned();
        if name.is_empty() {
            name = self.text(owner, path).or_else(|| proxy.get_property("Description").ok()).unwrap_or_default();
        }
        Some(Node { owner: owner.to_owned(), path: path.to_owned(), name, role, depth })
    }

    fn text(&self, owner: &str, path: &str) -> Option<String> {
        let proxy = self.proxy(owner, path, "org.a11y.atspi.Text").ok()?;
        proxy.call("GetText", &(0i32, -1i32)).ok()
    }

    /// Where a node is on the screen: x, y, width, height in pixels.
    ///
    /// # Errors
    /// When the node is gone or has no place.
    pub fn extents(&self, node: &Node) -> zbus::Result<(i32, i32, i32, i32)> {
        const SCREEN: u32 = 0;
        let reply =
            self.proxy(&node.owner, &node.path, "org.a11y.atspi.Component")?.call_method("GetExtents", &SCREEN)?;
        let body: OwnedValue = Value::from(reply.body().deserialize::<(i32, i32, i32, i32)>()?).try_into()?;
        Ok(body.try_into()?)
    }

    /// Does a node's first action, as Enter on it does.
    ///
    /// # Errors
    /// When the node is gone or has no action.
    pub fn act(&self, node: &Node) -> zbus::Result<()> {
        let done: bool = self.proxy(&node.owner, &node.path, "org.a11y.atspi.Action")?.call("DoAction", &0i32)?;
        if done { Ok(()) } else { Err(zbus::Error::Failure(format!("'{}' did nothing", node.name))) }
    }

    /// Waits until a node satisfies `wanted`.
    ///
    /// # Panics
    /// After `limit`, with the whole tree in the message.
    pub fn wait(&self, what: &str, limit: Duration, wanted: impl Fn(&Node) -> bool) -> Node {
        let pause = Duration::from_millis(200);
        let mut left = limit;
        loop {
            let nodes = self.nodes();
            if let Some(node) = nodes.iter().find(|node| wanted(node)) {
                return node.clone();
            }
            if left.is_zero() {
                panic!("no {what} after {limit:?}; the tree:\n{}", outline(&nodes));
            }
            std::thread::sleep(pause);
            left = left.saturating_sub(pause);
        }
    }

    fn proxy<'a>(&'a self, owner: &'a str, path: &'a str, interface: &'a str) -> zbus::Result<Proxy<'a>> {
        zbus::blocking::proxy::Builder::new(&self.bus)
            .destination(owner)?
            .path(path)?
            .interface(interface)?
            .cache_properties(zbus::proxy::CacheProperties::No)
            .build()
    }
}

/// AT-SPI's names of the roles that a window of ours has; the number of any other is enough for a failure message.
fn role_name(role: u32) -> &'static str {
    match role {
        6 => "canvas",
        7 => "check box",
        23 => "frame",
        27 => "image",
        29 => "label",
        31 => "list",
        32 => "list item",
        37 => "page tab",
        38 => "page tab list",
        39 => "panel",
        43 => "push button",
        44 => "radio button",
        48 => "scroll bar",
        51 => "slider",
        52 => "spin button",
        55 => "table",
        56 => "table cell",
        61 => "text",
        62 => "toggle button",
        65 => "tree",
        75 => "application",
        79 => "entry",
        91 => "tree item",
        116 => "static",
        _ => "other",
    }
}

/// The tree as indented text, for failure messages.
pub fn outline(nodes: &[Node]) -> String {
    let lines: Vec<String> =
        nodes.iter().map(|node| format!("{}{}: {}", "  ".repeat(node.depth), node.role, node.name)).collect();
    lines.join("\n")
}
