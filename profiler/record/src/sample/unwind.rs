//! Finds the callers of a sampled thread, from its registers and a part of its stack.
//!
//! The kernel follows frame pointers; in code without them (most C libraries) its chain ends early or goes wrong.
//! `framehop` follows the tables that compilers write for exceptions (`.eh_frame`) instead. Both are tried, and the
//! longer chain is used.

use super::elf::Elf;
use super::parse::{CONTEXT_KERNEL, CONTEXT_MAX, CONTEXT_USER, Sample};
use std::ops::Range;
#[cfg(target_arch = "x86_64")]
use {framehop::Unwinder as _, std::sync::Arc};

/// The most frames of a stack.
pub(crate) const MAX_FRAMES: usize = 256;

#[derive(Clone, Default)]
pub(crate) struct Unwinder {
    #[cfg(target_arch = "x86_64")]
    inner: framehop::x86_64::UnwinderX86_64<Arc<[u8]>>,
}

/// The cache of `framehop`.
#[derive(Default)]
pub(crate) struct Cache {
    #[cfg(target_arch = "x86_64")]
    inner: framehop::x86_64::CacheX86_64,
}

#[cfg(target_arch = "x86_64")]
impl Unwinder {
    /// Adds the code of a file that is mapped at `range`; addresses in the file are larger than those in memory by
    /// `bias` (wrapping).
    pub(crate) fn add(&mut self, path: &str, range: Range<u64>, bias: u64, elf: &Elf) {
        use framehop::{ExplicitModuleSectionInfo, Module};
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: elf.text.clone(),
            got_svma: elf.got.clone(),
            eh_frame_svma: elf.eh_frame.as_ref().map(|s| s.0.clone()),
            eh_frame: elf.eh_frame.as_ref().map(|s| Arc::clone(&s.1)),
            eh_frame_hdr_svma: elf.eh_frame_hdr.as_ref().map(|s| s.0.clone()),
            eh_frame_hdr: elf.eh_frame_hdr.as_ref().map(|s| Arc::clone(&s.1)),
            debug_frame: elf.debug_frame.clone(),
            ..Default::default()
        };
        self.inner.add_module(Module::new(path.to_owned(), range, 0u64.wrapping_sub(bias), info));
    }

    pub(crate) fn remove(&mut self, start: u64) {
        self.inner.remove_module(start);
    }

    /// Unwinds the user's frames, innermost first: the thread's instruction pointer, then the return addresses of its
    /// callers.
    fn frames(&self, sample: &Sample, cache: &mut Cache) -> Vec<u64> {
        let Some([bp, sp, ip]) = sample.registers else { return Vec::new() };
        let registers = framehop::x86_64::UnwindRegsX86_64::new(ip, sp, bp);
        let mut read = |address: u64| {
            let at = usize::try_from(address.checked_sub(sp).ok_or(())?).map_err(|_| ())?;
            let bytes = sample.stack.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
            bytes.try_into().map(u64::from_le_bytes).map_err(|_| ())
        };
        let mut frames = Vec::new();
        let mut callers = self.inner.iter_frames(ip, registers, &mut cache.inner, &mut read);
        while let Ok(Some(frame)) = callers.next()
            && frames.len() < MAX_FRAMES
        {
            frames.push(frame.address());
        }
        frames
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Unwinder {
    pub(crate) fn add(&mut self, _: &str, _: Range<u64>, _: u64, _: &Elf) {}

    pub(crate) fn remove(&mut self, _: u64) {}

    fn frames(&self, _: &Sample, _: &mut Cache) -> Vec<u64> {
        Vec::new()
    }
}

/// Returns the kernel's and the user's frames of a sample, each innermost first.
pub(crate) fn stack(sample: &Sample, unwinder: &Unwinder, cache: &mut Cache) -> (Vec<u64>, Vec<u64>) {
    let (mut kernel, mut user) = (Vec::new(), Vec::new());
    let mut in_kernel = false;
    for address in sample.chain.iter().take(MAX_FRAMES) {
        match *address {
            CONTEXT_KERNEL => in_kernel = true,
            CONTEXT_USER => in_kernel = false,
            mark if mark >= CONTEXT_MAX => {}
            address if in_kernel => kernel.push(address),
            address => user.push(address),
        }
    }
    let unwound = unwinder.frames(sample, cache);
    if unwound.len() > user.len() {
        user = unwound;
    }
    (kernel, user)
}
