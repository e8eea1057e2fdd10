//! cuDNN 9: convolutions. What was looked up for a convolution is kept.

use std::ffi::{CStr, c_int, c_void};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::libraries::{CudnnTable, Handle, LibraryError};
use crate::backend::{Address, Failed, MatrixType};
use crate::convolution::{Convolution, Pass};

// `cudnnDataType_t`, `cudnnTensorFormat_t`, `cudnnConvolutionMode_t`, `cudnnMathType_t` and `cudnnDeterminism_t`.
const FLOAT: c_int = 0;
const HALF: c_int = 2;
const BFLOAT16: c_int = 9;
const NCHW: c_int = 0;
const NHWC: c_int = 1;
const CROSS_CORRELATION: c_int = 1;
const DEFAULT_MATH: c_int = 0;
const TENSOR_OP_MATH: c_int = 1;
const FMA_MATH: c_int = 3;
const DETERMINISTIC: c_int = 1;

/// `cudnnConvolutionFwdAlgoPerf_t`, and those of the two gradients, which differ in the first number's type only.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Performance {
    algorithm: c_int,
    status: c_int,
    ms: f32,
    workspace: usize,
    determinism: c_int,
    math: c_int,
    reserved: [c_int; 3],
}

const _: () = assert!(size_of::<Performance>() == 48);

/// Algorithms that are asked for: more than there are.
const MAX_ALGORITHMS: usize = 16;
/// Memory that an algorithm may use for itself.
const MAX_WORKSPACE: usize = 512 << 20;
/// Convolutions that are kept; then all are looked up again.
const MAX_PREPARED: usize = 4096;

/// A convolution's descriptors. The library's own are destroyed with it.
struct Descriptors<'a> {
    table: &'a CudnnTable,
    image: Handle,
    result: Handle,
    filter: Handle,
    convolution: Handle,
}

/// What was looked up: the algorithm, how it multiplies, and the memory that it needs.
#[derive(Debug, Clone, Copy)]
struct AlgorithmChoice {
    algorithm: c_int,
    math: c_int,
    workspace: usize,
}

/// What was looked up, by convolution and pass; `None`: there is no algorithm.
type AlgorithmCache = FxHashMap<(Convolution, Pass), Option<AlgorithmChoice>>;

/// The library on a device.
pub(super) struct Dnn {
    table: CudnnTable,
    /// One thread at a time: the library's documentation asks for it.
    handle: Mutex<(Handle, AlgorithmCache)>,
}

// SAFETY: the handle is only used under its lock.
unsafe impl Send for Dnn {}
// SAFETY: as above.
unsafe impl Sync for Dnn {}

fn check(table: &CudnnTable, call: &'static str, status: c_int) -> Result<(), Failed> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: the library gives a static text for any number.
    let text = unsafe { (table.cudnnGetErrorString)(status) };
    // SAFETY: as above.
    let words = if text.is_null() { "".into() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy() };
    Err(Failed { call, reason: format!("{words} ({status})") })
}

impl Drop for Descriptors<'_> {
    fn drop(&mut self) {
        let t = self.table;
        // SAFETY: each was made by the library, or is null, and is destroyed once.
        unsafe {
            for tensor in [self.image, self.result] {
                if !tensor.is_null() {
                    (t.cudnnDestroyTensorDescriptor)(tensor);
                }
            }
            if !self.filter.is_null() {
                (t.cudnnDestroyFilterDescriptor)(self.filter);
            }
            if !self.convolution.is_null() {
                (t.cudnnDestroyConvolutionDescriptor)(self.convolution);
            }
        }
    }
}

/// A number as the library takes it.
fn int(n: usize) -> Result<c_int, Failed> {
    c_int::try_from(n).map_err(|_| Failed { call: "cuDNN", reason: format!("{n} is more than it counts") })
}

impl<'a> Descriptors<'a> {
    /// Needs no device. The library computes the result's size, too, and has to come to the same.
    fn new(table: &'a CudnnTable, c: &Convolution) -> Result<Descriptors<'a>, Failed> {
        let none = std::ptr::null_mut();
        let mut made = Descriptors { table, image: none, result: none, filter: none, convolution: none };
        let of = match c.of {
            MatrixType::F16 => HALF,
            MatrixType::Bf16 => BFLOAT16,
            _ => FLOAT,
        };
        let math = match c.of {
            MatrixType::F32 => FMA_MATH,
            MatrixType::F16 | MatrixType::Bf16 => TENSOR_OP_MATH,
            _ => DEFAULT_MATH,
        };
        let format = if c.channels_last { NHWC } else { NCHW };
        let result = c.result().ok_or_else(|| Failed { call: "cuDNN", reason: "there is no window".to_owned() })?;
        let ints = |a: [usize; 2]| Ok::<_, Failed>([int(a[0])?, int(a[1])?]);
        let ([rows, columns], [win_y, win_x]) = (ints(c.image)?, ints(c.window)?);
        let ([pad_y, pad_x], [step_y, step_x], [dil_y, dil_x]) = (ints(c.padding)?, ints(c.stride)?, ints(c.dilation)?);
        let (batch, channels, to, groups) = (int(c.batch)?, int(c.channels)?, int(c.to)?, int(c.groups)?);
        let expected = [batch, to, int(result[0])?, int(result[1])?];
        let each = channels / groups.max(1);
        let (t, ok) = (table, |call, status| check(table, call, status));
        let mut found = [0 as c_int; 4];
        // SAFETY: each writes a handle, or numbers, to the address that it is given; the handles were just made.
        unsafe {
            ok("cudnnCreateTensorDescriptor", (t.cudnnCreateTensorDescriptor)(&raw mut made.image))?;
            ok("cudnnCreateTensorDescriptor", (t.cudnnCreateTensorDescriptor)(&raw mut made.result))?;
            ok("cudnnCreateFilterDescriptor", (t.cudnnCreateFilterDescriptor)(&raw mut made.filter))?;
            ok("cudnnCreateConvolutionDescriptor", (t.cudnnCreateConvolutionDescriptor)(&raw mut made.convolution))?;
            let set = t.cudnnSetTensor4dDescriptor;
            ok("cudnnSetTensor4dDescriptor", set(made.image, format, of, batch, channels, rows, columns))?;
            let [n, k, h, w] = expected;
            ok("cudnnSetTensor4dDescriptor", set(made.result, format, of, n, k, h, w))?;
            let set = t.cudnnSetFilter4dDescriptor;
            ok("cudnnSetFilter4dDescriptor", set(made.filter, of, format, to, each, win_y, win_x))?;
            let conv = made.convolution;
            let set = t.cudnnSetConvolution2dDescriptor;
            let set = set(conv, pad_y, pad_x, step_y, step_x, dil_y, dil_x, CROSS_CORRELATION, FLOAT);
            ok("cudnnSetConvolution2dDescriptor", set)?;
            ok("cudnnSetConvolutionGroupCount", (t.cudnnSetConvolutionGroupCount)(conv, groups))?;
            ok("cudnnSetConvolutionMathType", (t.cudnnSetConvolutionMathType)(conv, math))?;
            let [a, b, c, d] = found.each_mut().map(std::ptr::from_mut);
            let status = (t.cudnnGetConvolution2dForwardOutputDim)(conv, made.image, made.filter, a, b, c, d);
            ok("cudnnGetConvolution2dForwardOutputDim", status)?;
        }
        if found != expected {
            let reason = format!("a result of {expected:?} expected, {found:?} reported");
            return Err(Failed { call: "cudnnGetConvolution2dForwardOutputDim", reason });
        }
        Ok(made)
    }

    /// Has the device compute: the call's name, and what it gives. Nothing of the host's is read after it returns.
    ///
    /// # Safety
    /// Image, filter and result lie where `at` says, and are as large as the descriptors; so is the workspace.
    unsafe fn launch(
        &self,
        handle: Handle,
        pass: Pass,
        algorithm: c_int,
        at: [Address; 3],
        (space, n_bytes): (Address, usize),
    ) -> (&'static str, c_int) {
        let (t, space) = (self.table, space as *mut c_void);
        let (factors, [x, w, y]) = ([1f32, 0f32], at.map(|at| at as *mut c_void));
        let [one, zero] = factors.each_ref().map(|f| std::ptr::from_ref(f).cast::<c_void>());
        // SAFETY: the caller's.
        unsafe {
            match pass {
                Pass::Forward => (
                    "cudnnConvolutionForward",
                    (t.cudnnConvolutionForward)(
                        handle,
                        one,
                        self.image,
                        x,
                        self.filter,
                        w,
                        self.convolution,
                        algorithm,
                        space,
                        n_bytes,
                        zero,
                        self.result,
                        y,
                    ),
                ),
                Pass::ToImage => (
                    "cudnnConvolutionBackwardData",
                    (t.cudnnConvolutionBackwardData)(
                        handle,
                        one,
                        self.filter,
                        w,
                        self.result,
                        y,
                        self.convolution,
                        algorithm,
                        space,
                        n_bytes,
                        zero,
                        self.image,
                        x,
                    ),
                ),
                Pass::ToFilter => (
                    "cudnnConvolutionBackwardFilter",
                    (t.cudnnConvolutionBackwardFilter)(
                        handle,
                        one,
                        self.image,
                        x,
                        self.result,
                        y,
                        self.convolution,
                        algorithm,
                        space,
                        n_bytes,
                        zero,
                        self.filter,
                        w,
                    ),
                ),
            }
        }
    }
}

/// The first algorithm, the quickest by the library's judgement, that works, always gives the same bits, needs no more memory than there is
/// for it, and multiplies f32 as f32.
fn choose(candidates: &[Performance], of: MatrixType) -> Option<AlgorithmChoice> {
    let is_exact = |math: c_int| of != MatrixType::F32 || math == FMA_MATH || math == DEFAULT_MATH;
    let fits = |w: &&Performance| {
        w.status == 0 && w.determinism == DETERMINISTIC && w.workspace <= MAX_WORKSPACE && is_exact(w.math)
    };
    let found = candidates.iter().find(fits)?;
    let math = if of == MatrixType::F32 { FMA_MATH } else { found.math };
    Some(AlgorithmChoice { algorithm: found.algorithm, math, workspace: found.workspace })
}

/// Whether it may be used: not where variable STEPSCOPE_CUDNN is 0.
fn is_wanted() -> bool {
    std::env::var_os("STEPSCOPE_CUDNN").is_none_or(|value| value != "0")
}

/// Finds the library: its functions, and its version as a text.
///
/// # Errors
/// It is not there, is not wanted, or of another version.
pub(super) fn find() -> Result<(CudnnTable, String), String> {
    if !is_wanted() {
        return Err("STEPSCOPE_CUDNN is 0".to_owned());
    }
    let table = CudnnTable::load().map_err(|e: LibraryError| e.to_string())?;
    // SAFETY: no conditions.
    let version = unsafe { (table.cudnnGetVersion)() };
    let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
    if version < 90_000 || major != 9 {
        return Err(format!("its version is {version}, 9 is needed"));
    }
    Ok((table, format!("{major}.{minor}.{patch}")))
}

impl Dnn {
    /// Starts the library for the device whose context is current, on its stream; `None`: there is none.
    pub fn load(stream: Handle) -> Result<Option<Dnn>, Failed> {
        let Ok((table, _)) = find() else { return Ok(None) };
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes a handle; the stream is the context's.
        unsafe {
            check(&table, "cudnnCreate", (table.cudnnCreate)(&raw mut handle))?;
            check(&table, "cudnnSetStream", (table.cudnnSetStream)(handle, stream))?;
        }
        Ok(Some(Dnn { table, handle: Mutex::new((handle, AlgorithmCache::default())) }))
    }

    /// Bytes that the best algorithm needs; `None`: there is none.
    pub fn workspace(&self, c: &Convolution, pass: Pass) -> Result<Option<usize>, Failed> {
        let (handle, cache) = &mut *self.handle.lock();
        if let Some(choice) = cache.get(&(*c, pass)) {
            return Ok(choice.map(|choice| choice.workspace));
        }
        if cache.len() >= MAX_PREPARED {
            cache.clear();
        }
        let found = self.look_up(*handle, c, pass);
        let choice = found.as_ref().ok().copied().flatten();
        cache.insert((*c, pass), choice);
        found.map(|choice| choice.map(|choice| choice.workspace))
    }

    fn look_up(&self, handle: Handle, c: &Convolution, pass: Pass) -> Result<Option<AlgorithmChoice>, Failed> {
        let d = Descriptors::new(&self.table, c)?;
        let none =
            Performance { algorithm: 0, status: 1, ms: 0.0, workspace: 0, determinism: 0, math: 0, reserved: [0; 3] };
        let (mut candidates, mut n) = ([none; MAX_ALGORITHMS], 0 as c_int);
        let (out, count, most) = (candidates.as_mut_ptr().cast::<c_void>(), &raw mut n, MAX_ALGORITHMS as c_int);
        let t = &self.table;
        // SAFETY: writes at most so many results, whose layout is NVIDIA's, and how many.
        let (call, status) = unsafe {
            match pass {
                Pass::Forward => (
                    "cudnnGetConvolutionForwardAlgorithm_v7",
                    (t.cudnnGetConvolutionForwardAlgorithm_v7)(
                        handle,
                        d.image,
                        d.filter,
                        d.convolution,
                        d.result,
                        most,
                        count,
                        out,
                    ),
                ),
                Pass::ToImage => (
                    "cudnnGetConvolutionBackwardDataAlgorithm_v7",
                    (t.cudnnGetConvolutionBackwardDataAlgorithm_v7)(
                        handle,
                        d.filter,
                        d.result,
                        d.convolution,
                        d.image,
                        most,
                        count,
                        out,
                    ),
                ),
                Pass::ToFilter => (
                    "cudnnGetConvolutionBackwardFilterAlgorithm_v7",
                    (t.cudnnGetConvolutionBackwardFilterAlgorithm_v7)(
                        handle,
                        d.image,
                        d.result,
                        d.convolution,
                        d.filter,
                        most,
                        count,
                        out,
                    ),
                ),
            }
        };
        check(t, call, status)?;
        let n = usize::try_from(n).unwrap_or(0).min(MAX_ALGORITHMS);
        Ok(choose(&candidates[..n], c.of))
    }

    /// Convolves. A convolution that fails is not tried again.
    pub fn convolve(
        &self,
        c: &Convolution,
        pass: Pass,
        at: [Address; 3],
        workspace: (Address, usize),
    ) -> Result<(), Failed> {
        let (handle, cache) = &mut *self.handle.lock();
        let Some(Some(choice)) = cache.get(&(*c, pass)).copied() else {
            return Err(Failed { call: "cuDNN", reason: format!("no algorithm was looked up for {c:?}") });
        };
        let done = self.begin(*handle, (c, pass, &choice), at, workspace);
        if done.is_err() {
            cache.insert((*c, pass), None);
        }
        done
    }

    fn begin(
        &self,
        handle: Handle,
        (c, pass, choice): (&Convolution, Pass, &AlgorithmChoice),
        at: [Address; 3],
        workspace: (Address, usize),
    ) -> Result<(), Failed> {
        let d = Descriptors::new(&self.table, c)?;
        let set = self.table.cudnnSetConvolutionMathType;
        // SAFETY: the descriptor was just made.
        check(&self.table, "cudnnSetConvolutionMathType", unsafe { set(d.convolution, choice.math) })?;
        // SAFETY: addresses are the caller's, as long as the description says.
        let (call, status) = unsafe { d.launch(handle, pass, choice.algorithm, at, workspace) };
        check(&self.table, call, status)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]
mod tests {
    use super::*;

    /// The library needs a device to compute, but none to describe convolutions: it checks descriptions, and computes the result's size.
    #[test]
    fn the_library_takes_descriptions_and_finds_the_same_sizes() {
        let (table, version) = match find() {
            Ok(found) => found,
            Err(why) => {
                return eprintln!(
                    "skipped: cuDNN: {why} (pip install nvidia-cudnn-cu13, STEPSCOPE_CUDA_LIBRARIES=its lib folder)"
                );
            }
        };
        eprintln!("cuDNN {version}");
        let mut n = 0;
        for of in [MatrixType::F32, MatrixType::Tf32, MatrixType::F16, MatrixType::Bf16] {
            for (image, window, padding, stride, dilation) in [
                ([8, 9], [3, 3], [1, 1], [1, 1], [1, 1]),
                ([9, 8], [3, 2], [0, 1], [2, 3], [1, 1]),
                ([11, 12], [3, 3], [2, 0], [1, 2], [2, 3]),
                ([7, 7], [1, 1], [0, 0], [1, 1], [1, 1]),
                ([5, 6], [5, 6], [0, 0], [4, 1], [1, 1]),
            ] {
                for groups in [1, 2, 4] {
                    let channels_last = of != MatrixType::F32;
                    let sizes = (3, 8, 12);
                    let c = Convolution {
                        of,
                        channels_last,
                        batch: sizes.0,
                        channels: sizes.1,
                        to: sizes.2,
                        groups,
                        image,
                        window,
                        padding,
                        stride,
                        dilation,
                    };
                    Descriptors::new(&table, &c).unwrap_or_else(|e| panic!("{c:?}: {e}"));
                    n += 1;
                }
            }
        }
        assert_eq!(n, 60);
        let wrong = Convolution {
            of: MatrixType::F32,
            channels_last: false,
            batch: 1,
            channels: 1,
            to: 1,
            groups: 1,
            image: [4, 4],
            window: [3, 3],
            padding: [0, 0],
            stride: [1, 1],
            dilation: [0, 0],
        };
        // What it refuses is an error in its words.
        let error = Descriptors::new(&table, &wrong).map(drop).unwrap_err();
        assert!(error.reason.contains("CUDNN_STATUS_BAD_PARAM"), "{error}");
        // Without a device it does not start: an error, too.
        if crate::driver::Driver::get().is_err() {
            let error = Dnn::load(std::ptr::null_mut()).map(drop).unwrap_err();
            assert_eq!(error.call, "cudnnCreate");
        }
    }

    #[test]
    fn algorithms_that_change_bits_or_need_too_much_are_not_taken() {
        let candidate = |algorithm, determinism, workspace, math| Performance {
            algorithm,
            status: 0,
            ms: 1.0,
            workspace,
            determinism,
            math,
            reserved: [0; 3],
        };
        let all = [
            Performance { status: 3000, ..candidate(0, 1, 0, FMA_MATH) },
            candidate(1, 0, 0, FMA_MATH),
            candidate(2, 1, MAX_WORKSPACE + 1, FMA_MATH),
            candidate(3, 1, 0, 2),
            candidate(4, 1, 77, DEFAULT_MATH),
        ];
        let chosen = choose(&all, MatrixType::F32).unwrap();
        assert_eq!((chosen.algorithm, chosen.math, chosen.workspace), (4, FMA_MATH, 77));
        assert_eq!(choose(&all, MatrixType::F16).map(|choice| (choice.algorithm, choice.math)), Some((3, 2)));
        assert!(choose(&all[..3], MatrixType::F16).is_none() && choose(&[], MatrixType::F32).is_none());
    }
}
