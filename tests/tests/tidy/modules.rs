//! The modules of a crate and which file takes which names from which other file.
//!
//! A name counts for the file that defines it, not for the module that re-exports it. A re-export (`pub use`) makes its
//! file no importer as long as the file's own code does not use the name: a `mod.rs` that only declares and re-exports
//! stands outside of every circle, one that defines what its children use and uses its children does not. Names that come
//! by a method call or a macro without a path are not seen.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::source::{Source, Token, group_end};

/// Names by the file that takes them and the file that defines them.
pub type Imports = BTreeMap<(PathBuf, PathBuf), BTreeSet<String>>;

const ITEMS: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "const", "static", "union"];

/// A name in `use`, or a path in code.
struct Use<'a> {
    path: Vec<&'a str>,
    /// The name that it gets here: `*` for all of a module, `_` for none.
    name: &'a str,
    is_reexport: bool,
}

/// A module: a file, or `mod name { ... }` in one.
#[derive(Default)]
struct Module<'a> {
    file: usize,
    parent: Option<usize>,
    children: HashMap<&'a str, usize>,
    defines: BTreeSet<&'a str>,
    uses: Vec<Use<'a>>,
    /// Paths of two names and more in its code.
    paths: Vec<Vec<&'a str>>,
    words: BTreeSet<&'a str>,
}

/// The crate whose root module is in the file `root` of `files`.
pub struct Crate<'a> {
    files: Vec<&'a Path>,
    modules: Vec<Module<'a>>,
}

impl<'a> Crate<'a> {
    pub fn read(root: &'a Path, files: &'a BTreeMap<PathBuf, String>) -> Self {
        let mut new = Self { files: Vec::new(), modules: Vec::new() };
        if let Some((path, text)) = files.get_key_value(root) {
            let folder = path.parent().unwrap_or(Path::new(""));
            new.read_file(path, text, folder, None, files);
        }
        new
    }

    /// Reads a file with the modules below it; `folder` is where its child modules lie.
    fn read_file(
        &mut self,
        path: &'a Path,
        text: &'a str,
        folder: &Path,
        parent: Option<usize>,
        files: &'a BTreeMap<PathBuf, String>,
    ) -> usize {
        let source = Source::of_product(text);
        self.files.push(path);
        let module = self.add(self.files.len() - 1, parent);
        let mut declared = Vec::new();
        self.read_items(module, &source.tokens, &mut declared);
        for (parent, folders, name) in declared {
            let below = folders.iter().fold(folder.to_path_buf(), |path, folder| path.join(folder));
            let (flat, deep) = (below.join(name).with_extension("rs"), below.join(name).join("mod.rs"));
            if let Some((path, text)) = files.get_key_value(&flat).or_else(|| files.get_key_value(&deep)) {
                let child = self.read_file(path, text, &below.join(name), Some(parent), files);
                self.modules[parent].children.insert(name, child);
            }
        }
        module
    }

    fn add(&mut self, file: usize, parent: Option<usize>) -> usize {
        self.modules.push(Module { file, parent, ..Module::default() });
        self.modules.len() - 1
    }

    /// Reads the items of a module; modules in files of their own go into `declared`, with the inline modules around them.
    fn read_items(&mut self, module: usize, tokens: &[Token<'a>], declared: &mut Vec<(usize, Vec<&'a str>, &'a str)>) {
        let (mut at, mut depth, mut is_public) = (0, 0usize, false);
        while at < tokens.len() {
            let word = tokens[at].word();
            let name = tokens.get(at + 1).and_then(|t| t.word());
            let opens = |at: usize| tokens.get(at).is_some_and(|t| t.is('{'));
            match (word, name) {
                (Some("mod"), Some(name)) if opens(at + 2) => {
                    let end = group_end(tokens, at + 2);
                    let child = self.add(self.modules[module].file, Some(module));
                    let n = declared.len();
                    self.read_items(child, &tokens[at + 3..end - 1], declared);
                    declared[n..].iter_mut().for_each(|(_, folders, _)| folders.insert(0, name));
                    self.modules[module].children.insert(name, child);
                    at = end - 1;
                }
                (Some("mod"), Some(name)) => {
                    declared.push((module, Vec::new(), name));
                    at += 1;
                }
                (Some("use"), _) => {
                    let end = tokens[at..].iter().position(|t| t.is(';')).map_or(tokens.len(), |i| at + i);
                    read_use(&tokens[at + 1..end], &[], is_public, &mut self.modules[module].uses);
                    at = end;
                }
                (Some(kind), Some(name)) if depth == 0 && ITEMS.contains(&kind) && !ITEMS.contains(&name) => {
                    self.modules[module].defines.insert(name);
                    at += 1;
                }
                (Some("macro_rules"), None) => {
                    let name = tokens.get(at + 2).and_then(|t| t.word());
                    self.modules[module].defines.extend(name);
                    at += 2;
                }
                // Items in the braces of a macro (`thread_local! { static ... }`) stand in the module.
                (Some(_), None)
                    if depth == 0 && tokens[at + 1..].first().is_some_and(|t| t.is('!')) && opens(at + 2) =>
                {
                    let end = group_end(tokens, at + 2);
                    self.read_items(module, &tokens[at + 3..end - 1], declared);
                    at = end - 1;
                }
                (Some(first), _) => at = self.read_path(module, first, tokens, at),
                _ => {}
            }
            let Some(token) = tokens.get(at) else { break };
            match token {
                Token::Sign('{') => depth += 1,
                Token::Sign('}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            // `pub` and `pub(...)` belong to what follows them.
            let goes_on = matches!(word, Some("crate" | "super" | "in" | "self")) || token.is('(') || token.is(')');
            is_public = word == Some("pub") || is_public && goes_on;
            at += 1;
        }
    }

    /// Keeps the path that begins at `at`; where its last word stands.
    fn read_path(&mut self, module: usize, first: &'a str, tokens: &[Token<'a>], mut at: usize) -> usize {
        let mut path = vec![first];
        while let Some([Token::Path, Token::Word(next)]) = tokens.get(at + 1..at + 3) {
            path.push(next);
            at += 2;
        }
        let module = &mut self.modules[module];
        module.words.insert(first);
        if path.len() > 1 {
            module.paths.push(path);
        }
        at
    }

    /// What each file takes from others of the crate.
    pub fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (at, module) in self.modules.iter().enumerate() {
            let used = module.uses.iter().filter(|u| !u.is_reexport || module.words.contains(u.name));
            let paths = used.map(|u| &u.path).chain(&module.paths).filter_map(|path| self.definition(at, path));
            let has_globs = module.uses.iter().any(|u| u.name == "*" && !u.is_reexport);
            let words = module.words.iter().filter(|word| has_globs && !module.defines.contains(*word));
            let by_globs =
                words.filter_map(|word| match self.lookup_in_globs(at, word, false, &mut BTreeSet::new())? {
                    Target::Item(file) => Some((file, *word)),
                    Target::Module(_) => None,
                });
            for (file, name) in paths.chain(by_globs).filter(|(file, _)| *file != module.file) {
                let key = (self.files[module.file].to_path_buf(), self.files[file].to_path_buf());
                imports.entry(key).or_default().insert(name.to_owned());
            }
        }
        imports
    }

    /// The file that defines what a path ends at, and its name; nothing for a module or for what is not of this crate.
    fn definition<'b>(&self, from: usize, path: &[&'b str]) -> Option<(usize, &'b str)> {
        match self.follow(from, path, false, &mut BTreeSet::new())? {
            (Target::Item(file), name) => Some((file, name)),
            (Target::Module(_), _) => None,
        }
    }

    /// Where a path leads to, and the name at which it is there: what follows the name of an item is a variant or a method.
    fn follow<'b>(
        &self,
        from: usize,
        path: &[&'b str],
        wants_module: bool,
        visited: &mut BTreeSet<(usize, String)>,
    ) -> Option<(Target, &'b str)> {
        let mut module = from;
        let mut target = (Target::Module(from), "");
        for (i, name) in path.iter().enumerate() {
            let next = match *name {
                "crate" => Target::Module(0),
                "self" => Target::Module(module),
                "super" => Target::Module(self.modules[module].parent?),
                name => self.lookup(module, name, wants_module || i + 1 < path.len(), visited)?,
            };
            target = (next, *name);
            match next {
                Target::Module(next) => module = next,
                Target::Item(_) => break,
            }
        }
        Some(target)
    }

    /// What a name means in a module: `wants_module` where a path goes on behind it.
    fn lookup(
        &self,
        module: usize,
        name: &str,
        wants_module: bool,
        visited: &mut BTreeSet<(usize, String)>,
    ) -> Option<Target> {
        // `use name::...` of another crate's `name` must not find itself.
        if !visited.insert((module, name.to_owned())) {
            return None;
        }
        let here = &self.modules[module];
        let child = here.children.get(name).map(|child| Target::Module(*child));
        let item = here.defines.contains(name).then_some(Target::Item(here.file));
        let own = if wants_module { child.or(item) } else { item.or(child) };
        let mut named = here.uses.iter().filter(|u| u.name == name);
        own.or_else(|| named.find_map(|u| Some(self.follow(module, &u.path, wants_module, visited)?.0)))
            .or_else(|| self.lookup_in_globs(module, name, wants_module, visited))
    }

    fn lookup_in_globs(
        &self,
        module: usize,
        name: &str,
        wants_module: bool,
        visited: &mut BTreeSet<(usize, String)>,
    ) -> Option<Target> {
        let mut globs = self.modules[module].uses.iter().filter(|u| u.name == "*");
        globs.find_map(|u| match self.follow(module, &u.path, true, visited)?.0 {
            Target::Module(target) => self.lookup(target, name, wants_module, visited),
            Target::Item(_) => None,
        })
    }
}

/// What a name stands for: a module, or an item of a file.
#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    Item(usize),
}

/// The names of the tree `a::{b, c as d, e::*}`.
fn read_use<'a>(tree: &[Token<'a>], before: &[&'a str], is_reexport: bool, uses: &mut Vec<Use<'a>>) {
    let mut path = before.to_vec();
    let mut name = None;
    let mut at = 0;
    while at < tree.len() {
        match tree[at] {
            Token::Word("as") => {
                name = tree.get(at + 1).and_then(|t| t.word());
                at += 1;
            }
            Token::Word("self") if !path.is_empty() => {}
            Token::Word(word) => path.push(word),
            Token::Sign('*') => name = Some("*"),
            Token::Sign('{') => {
                let end = group_end(tree, at);
                let (mut begin, mut depth) = (at + 1, 0);
                for (i, token) in tree.iter().enumerate().take(end).skip(at + 1) {
                    match token {
                        Token::Sign('{') => depth += 1,
                        Token::Sign('}') if i + 1 < end => depth -= 1,
                        Token::Sign(',') if depth == 0 => {
                            read_use(&tree[begin..i], &path, is_reexport, uses);
                            begin = i + 1;
                        }
                        _ => {}
                    }
                }
                read_use(&tree[begin..end - 1], &path, is_reexport, uses);
                return;
            }
            _ => {}
        }
        at += 1;
    }
    if let Some(last) = path.last().filter(|_| !tree.is_empty()) {
        let name = name.unwrap_or(last);
        uses.push(Use { path, name, is_reexport });
    }
}

/// The groups of files that take names from each other in a loop, biggest first.
pub fn circles(imports: &Imports) -> Vec<BTreeSet<&Path>> {
    let mut from: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    for (importer, definer) in imports.keys() {
        from.entry(importer).or_default().push(definer);
    }
    let reached = |start: &'_ Path| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&Path> = from.get(start).cloned().unwrap_or_default();
        while let Some(path) = next.pop() {
            if seen.insert(path) {
                next.extend(from.get(path).into_iter().flatten());
            }
        }
        seen
    };
    let reach: BTreeMap<&Path, BTreeSet<&Path>> = from.keys().map(|path| (*path, reached(path))).collect();
    let mut circles: BTreeSet<BTreeSet<&Path>> = BTreeSet::new();
    for (path, others) in reach.iter().filter(|(path, others)| others.contains(*path)) {
        let back = others.iter().filter(|other| reach.get(*other).is_some_and(|r| r.contains(path)));
        circles.insert(back.copied().collect());
    }
    let mut circles: Vec<_> = circles.into_iter().collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `file -> file: names` of a crate whose root is `lib.rs`.
    fn imports_of(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect();
        let imports = Crate::read(Path::new("lib.rs"), &files).imports();
        let shown = imports.iter().map(|((from, to), names)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("{} -> {}: {}", from.display(), to.display(), names.join(", "))
        });
        shown.collect()
    }

    #[test]
    fn names_are_found_where_they_are_defined() {
        let imports = imports_of(&[
            (
                "lib.rs",
                "mod a; mod b; pub use a::A; pub mod c; pub use self::c::{deep::{self, Deep}, Other as Another};",
            ),
            ("a.rs", "use crate::Deep; use super::Another; pub struct A; fn f() { crate::b::g() }"),
            ("b.rs", "use std::fmt; pub fn g() { let a: crate::A = fmt::x(); }"),
            ("c/mod.rs", "pub mod deep; pub struct Other;"),
            ("c/deep.rs", "use super::super::deep; pub struct Deep;"),
        ]);
        assert_eq!(
            imports,
            ["a.rs -> b.rs: g", "a.rs -> c/deep.rs: Deep", "a.rs -> c/mod.rs: Another", "b.rs -> a.rs: A"]
        );
    }

    #[test]
    fn a_module_that_only_declares_imports_nothing_and_one_that_uses_its_children_does() {
        let only = imports_of(&[
            ("lib.rs", "mod a; pub use a::A; pub(crate) use a::B;"),
            ("a.rs", "pub struct A; pub struct B;"),
        ]);
        assert!(only.is_empty(), "{only:?}");
        let imports = imports_of(&[
            ("lib.rs", "mod a; pub use a::A; pub struct Own(A);"),
            ("a.rs", "pub struct A; fn f(own: super::Own) {}"),
        ]);
        assert_eq!(imports, ["a.rs -> lib.rs: Own", "lib.rs -> a.rs: A"]);
    }

    #[test]
    fn globs_aliases_inline_modules_and_variants() {
        let imports = imports_of(&[
            ("lib.rs", "mod a; mod b; pub mod prelude { pub use crate::a::*; }"),
            ("a.rs", "pub enum E { V } pub const LIMIT: u8 = 1; pub mod inner { pub fn f() {} }"),
            ("b.rs", "use crate::{prelude::*, a as near}; fn g() { let v = E::V; near::inner::f(); near::LIMIT; }"),
        ]);
        assert_eq!(imports, ["b.rs -> a.rs: E, LIMIT, f"]);
    }

    #[test]
    fn tests_are_no_importers() {
        let imports = imports_of(&[
            ("lib.rs", "mod a; pub struct L; #[cfg(test)] mod tests;"),
            ("a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::L; }"),
            ("tests.rs", "use crate::a::A;"),
        ]);
        assert!(imports.is_empty(), "{imports:?}");
    }

    #[test]
    fn circles_are_files_that_reach_each_other() {
        let pair = |from: &str, to: &str| ((PathBuf::from(from), PathBuf::from(to)), BTreeSet::new());
        let imports: Imports = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d"), ("e", "f")]
            .map(|(from, to)| pair(from, to))
            .into();
        let found = circles(&imports);
        let shown: Vec<Vec<String>> =
            found.iter().map(|c| c.iter().map(|p| p.display().to_string()).collect()).collect();
        assert_eq!(shown, [vec!["a", "b", "c"], vec!["d", "e"]]);
    }
}
