//! Kernels that read, write and list files.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::checkpoint::{text, texts};
use super::support::{Computed, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static FILES: &[KernelDef] = &[
    cpu_any("ReadFile", |_| kernel(read)),
    cpu_any("WriteFile", |_| kernel(write)),
    cpu_any("MatchingFiles", |_| kernel(matching)),
];

/// Names that one call lists at most.
const MAX_MATCHES: usize = 10_000_000;

fn read(c: &mut KernelContext<'_>) -> Computed {
    let name = text(c, 0)?;
    let content = std::fs::read(&name).map_err(|e| KernelError::File(name.into(), e))?;
    c.set(0, Tensor::string(content));
    Ok(())
}

fn write(c: &mut KernelContext<'_>) -> Computed {
    let name = text(c, 0)?;
    let [content] = c.input(1)?.strings()? else { return Err(KernelError::invalid("contents must be one string")) };
    let folder = Path::new(&name).parent().filter(|p| !p.as_os_str().is_empty());
    let written = folder.map_or(Ok(()), std::fs::create_dir_all);
    let written = written.and_then(|()| std::fs::File::create(&name)?.write_all(content));
    written.map_err(|e| KernelError::File(name.into(), e))
}

fn matching(c: &mut KernelContext<'_>) -> Computed {
    let mut found = Vec::new();
    for pattern in texts(c, 0)? {
        expand(&pattern, &mut found)?;
    }
    found.sort();
    found.dedup();
    let n = found.len();
    c.set(0, Tensor::from_strings([n], found)?);
    Ok(())
}

/// The files that a pattern means: `*`, `?`, `[a-z]`, `[^a-z]` and `\x` in any component, none crossing a `/`.
fn expand(pattern: &str, found: &mut Vec<Vec<u8>>) -> Computed {
    let mut folders = vec![PathBuf::from(if pattern.starts_with('/') { "/" } else { "" })];
    let components: Vec<&str> = pattern.split('/').filter(|c| !c.is_empty()).collect();
    for (i, component) in components.iter().enumerate() {
        let is_last = i + 1 == components.len();
        let mut next = Vec::new();
        for folder in &folders {
            if !component.contains(['*', '?', '[', '\\']) {
                next.extend(Some(folder.join(component)).filter(|p| p.exists()));
                continue;
            }
            let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            for entry in std::fs::read_dir(listed).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let is_match = matches(component.as_bytes(), name.as_encoded_bytes());
                if is_match && (is_last || entry.path().is_dir()) {
                    next.push(folder.join(&name));
                }
            }
        }
        if next.len() + found.len() > MAX_MATCHES {
            return Err(KernelError::invalid(format!("{pattern} matches more than {MAX_MATCHES} files")));
        }
        folders = next;
    }
    found.extend(folders.into_iter().map(|p| p.into_os_string().into_encoded_bytes()));
    Ok(())
}

/// Whether a name fits one component of a pattern. Two positions suffice: only the last `*` is ever tried again.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, n));
            p += 1;
        } else if let Some(len) = matches_one(&pattern[p..], name[n]) {
            p += len;
            n += 1;
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, n) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

/// The length of the pattern's first item, where it fits the byte.
fn matches_one(pattern: &[u8], byte: u8) -> Option<usize> {
    match *pattern.first()? {
        b'?' => Some(1),
        b'\\' => (pattern.get(1) == Some(&byte)).then_some(2),
        b'[' => {
            let is_not = matches!(pattern.get(1), Some(b'^' | b'!'));
            let begin = 1 + usize::from(is_not);
            // A bracket that comes first is one of the set.
            let end = begin + 1 + pattern.get(begin + 1..)?.iter().position(|b| *b == b']')?;
            let (set, mut i, mut is_in) = (&pattern[begin..end], 0, false);
            while i < set.len() {
                if i + 2 < set.len() && set[i + 1] == b'-' {
                    is_in |= (set[i]..=set[i + 2]).contains(&byte);
                    i += 3;
                } else {
                    is_in |= set[i] == byte;
                    i += 1;
                }
            }
            (is_in != is_not).then_some(end + 1)
        }
        other => (other == byte).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_a_shell_would() {
        let yes = |p: &str, n: &str| assert!(matches(p.as_bytes(), n.as_bytes()), "{p} {n}");
        let no = |p: &str, n: &str| assert!(!matches(p.as_bytes(), n.as_bytes()), "{p} {n}");
        yes("*.txt", "a.txt");
        yes("a*b*c", "a__b_b_c");
        yes("[a-c]?[^x]", "bzy");
        yes(r"\*", "*");
        yes("[]]", "]");
        no("*.txt", "a.txt.gz");
        no("[a-c]", "d");
        no("a", "");
        no("[a", "a");
        // Quick, not exponential.
        no(&"*a".repeat(50), &"a".repeat(49));
    }
}
