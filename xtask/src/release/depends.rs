//! What a Debian package depends on, from the programs in it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::command::{output, text};
use crate::steps::Failed;

/// The packages that programs and libraries of this machine need to start, in the form of the field `Depends`.
///
/// `dpkg-shlibdeps` would name the glibc of the system that builds: since glibc 2.34 that has in one library what older ones have in
/// several, and the symbols of a program for 2.28 are looked up there. So the oldest glibc is taken from what the dynamic linker
/// compares, the versions in the files themselves.
pub fn of(files: &[&str]) -> Result<String, Failed> {
    let (mut packages, mut glibc) = (BTreeSet::new(), None);
    for file in files {
        for library in needed(&output("readelf", &["-dW", file])?) {
            packages.insert(package_of(library)?);
        }
        glibc = glibc.max(newest_glibc(&output("readelf", &["-VW", file])?));
    }
    let with_version = packages.into_iter().map(|package| match (&*package, glibc) {
        ("libc6", Some((major, minor))) => format!("libc6 (>= {major}.{minor})"),
        _ => package,
    });
    Ok(with_version.collect::<Vec<_>>().join(", "))
}

/// Fails if a program needs a newer glibc than `oldest`.
pub fn check_glibc(program: &Path, oldest: &str) -> Result<(), Failed> {
    let needed = newest_glibc(&output("readelf", &["-VW", &text(program)])?);
    match needed.filter(|needed| Some(*needed) > newest_glibc(&format!("GLIBC_{oldest}"))) {
        Some((major, minor)) => Err(Failed(format!("program, which needs glibc {major}.{minor}, not {oldest},"))),
        None => Ok(()),
    }
}

/// The libraries that `readelf -d` lists as needed.
fn needed(dynamic: &str) -> Vec<&str> {
    let lines = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    lines.filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0)).collect()
}

/// The newest version of glibc, as major and minor number, among the versions that `readelf -V` lists.
fn newest_glibc(versions: &str) -> Option<(u32, u32)> {
    let names = versions.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
    let numbers = names.filter_map(|name| name.strip_prefix("GLIBC_")?.split_once('.'));
    numbers.filter_map(|(major, rest)| Some((major.parse().ok()?, rest.split('.').next()?.parse().ok()?))).max()
}

/// The installed package that has a library.
fn package_of(library: &str) -> Result<String, Failed> {
    let pattern = format!("*/{}-linux-gnu/{library}", std::env::consts::ARCH);
    // NAME:ARCHITECTURE: PATH
    let found = output("dpkg", &["-S", &pattern])?;
    let name = found.split([':', ',']).next().filter(|name| !name.is_empty());
    name.map(str::to_owned).ok_or_else(|| Failed(format!("no package has {library}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_versions_are_found_in_readelfs_text() {
        let dynamic = " 0x0000000000000001 (NEEDED)             Shared library: [libm.so.6]\n \
                       0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]\n \
                       0x000000000000000e (SONAME)             Library soname: [libx.so]\n";
        assert_eq!(needed(dynamic), ["libm.so.6", "libc.so.6"]);
        let versions = "  000:   0 (*local*)       9 (GLIBC_2.9)  10 (GLIBC_2.28)   2 (GLIBC_2.2.5)\n  \
                        0x0010:   Name: GLIBC_PRIVATE  Flags: none  Version: 4\n  Name: GCC_3.0\n";
        assert_eq!(newest_glibc(versions), Some((2, 28)));
        assert_eq!(newest_glibc("Name: GCC_4.2.0"), None);
    }
}
