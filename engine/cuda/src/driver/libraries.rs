//! NVIDIA's libraries, found at run time. Their functions are looked up one by one, so that a version that lacks one is an
//! error that names it.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};

use libloading::Library;

/// Why a library cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LibraryError {
    /// It is not there.
    #[error("no {0} is found")]
    Missing(&'static str),
    /// It is too old, or too new.
    #[error("{library} has no function {function}")]
    NoFunction {
        /// The library.
        library: &'static str,
        /// What it lacks.
        function: &'static str,
    },
}

/// The folders that are searched before the system's: of a CUDA toolkit that variables name.
fn folders() -> impl Iterator<Item = PathBuf> {
    let listed = std::env::var_os("STEPSCOPE_CUDA_LIBRARIES").into_iter();
    let listed = listed.flat_map(|list| std::env::split_paths(&list).collect::<Vec<_>>());
    let toolkits = ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(std::env::var_os);
    let usual = toolkits.map(PathBuf::from).chain([PathBuf::from("/usr/local/cuda")]);
    listed.chain(usual.map(|toolkit| toolkit.join("lib64")))
}

/// The driver's version of CUDA, its major number; 0 while it is not known.
static MAJOR: AtomicI32 = AtomicI32::new(0);

/// Lets libraries of this version come first: a driver runs no code of a compiler that is newer.
pub(super) fn prefer(major: i32) {
    MAJOR.store(major, Ordering::Relaxed);
}

/// Opens the first of `names` that there is.
fn open(library: &'static str, names: &[&str]) -> Result<Library, LibraryError> {
    let version = format!(".so.{}", MAJOR.load(Ordering::Relaxed));
    let mut names = names.to_vec();
    names.sort_by_key(|name| !name.ends_with(&version));
    let folders: Vec<PathBuf> = folders().collect();
    let in_folders = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let candidates = in_folders.filter(|path| path.is_file()).chain(names.iter().map(PathBuf::from));
    for candidate in candidates {
        // SAFETY: loading runs the library's initialisers, which NVIDIA means to be run in any process.
        if let Ok(found) = unsafe { Library::new(&candidate) } {
            return Ok(found);
        }
    }
    Err(LibraryError::Missing(library))
}

/// What a function gives: a status, unless it says otherwise.
macro_rules! given {
    () => {
        c_int
    };
    ($given:ty) => {
        $given
    };
}

/// A table of a library's functions.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident of $library:literal in $names:expr; $($function:ident($($argument:ty),*) $(-> $given:ty)?;)*) => {
        $(#[$doc])*
        #[allow(non_snake_case, reason = "NVIDIA's names")]
        pub struct $table {
            $(pub $function: unsafe extern "C" fn($($argument),*) -> given!($($given)?),)*
            /// Keeps the functions where they are.
            _library: Library,
        }

        impl $table {
            /// Finds the library.
            ///
            /// # Errors
            /// It is not there, or lacks a function.
            pub fn load() -> Result<$table, LibraryError> {
                let library = open($library, $names)?;
                Ok($table {
                    $($function: {
                        let name = concat!(stringify!($function), "\0");
                        type Function = unsafe extern "C" fn($($argument),*) -> given!($($given)?);
                        // SAFETY: the type is that of the function, as NVIDIA's headers declare it.
                        let found = unsafe { library.get::<Function>(name.as_bytes()) };
                        *found.map_err(|_| LibraryError::NoFunction { library: $library, function: stringify!($function) })?
                    },)*
                    _library: library,
                })
            }
        }
    };
}

/// A handle of a library.
pub type Handle = *mut c_void;
type Out<T> = *mut T;

functions! {
    /// The driver.
    DriverTable of "libcuda" in &["libcuda.so.1", "libcuda.so", "nvcuda.dll"];
    cuInit(c_uint);
    cuDriverGetVersion(Out<c_int>);
    cuGetErrorString(c_int, Out<*const c_char>);
    cuDeviceGetCount(Out<c_int>);
    cuDeviceGet(Out<c_int>, c_int);
    cuDeviceGetName(*mut c_char, c_int, c_int);
    cuDeviceGetAttribute(Out<c_int>, c_int, c_int);
    cuDevicePrimaryCtxRetain(Out<Handle>, c_int);
    cuCtxSetCurrent(Handle);
    cuCtxEnablePeerAccess(Handle, c_uint);
    cuMemGetInfo_v2(Out<usize>, Out<usize>);
    cuMemAlloc_v2(Out<u64>, usize);
    cuMemFree_v2(u64);
    cuMemHostAlloc(Out<*mut c_void>, usize, c_uint);
    cuMemFreeHost(*mut c_void);
    cuMemcpyHtoDAsync_v2(u64, *const c_void, usize, Handle);
    cuMemcpyDtoHAsync_v2(*mut c_void, u64, usize, Handle);
    cuMemcpyDtoDAsync_v2(u64, u64, usize, Handle);
    cuMemcpyPeerAsync(u64, Handle, u64, Handle, usize, Handle);
    cuMemsetD32Async(u64, c_uint, usize, Handle);
    cuMemsetD8Async(u64, u8, usize, Handle);
    cuStreamCreate(Out<Handle>, c_uint);
    cuStreamWaitEvent(Handle, Handle, c_uint);
    cuStreamSynchronize(Handle);
    cuEventCreate(Out<Handle>, c_uint);
    cuEventRecord(Handle, Handle);
    cuEventQuery(Handle);
    cuModuleLoadData(Out<Handle>, *const c_void);
    cuModuleGetFunction(Out<Handle>, Handle, *const c_char);
    cuLaunchKernel(
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
    );
}

functions! {
    /// The run-time compiler.
    NvrtcTable of "libnvrtc" in &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "nvrtc64_130_0.dll", "nvrtc64_120_0.dll"];
    nvrtcVersion(Out<c_int>, Out<c_int>);
    nvrtcGetNumSupportedArchs(Out<c_int>);
    nvrtcGetSupportedArchs(*mut c_int);
    nvrtcCreateProgram(Out<Handle>, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char);
    nvrtcCompileProgram(Handle, c_int, *const *const c_char);
    nvrtcGetProgramLogSize(Handle, Out<usize>);
    nvrtcGetProgramLog(Handle, *mut c_char);
    nvrtcGetCUBINSize(Handle, Out<usize>);
    nvrtcGetCUBIN(Handle, *mut c_char);
    nvrtcGetPTXSize(Handle, Out<usize>);
    nvrtcGetPTX(Handle, *mut c_char);
    nvrtcDestroyProgram(Out<Handle>);
}

functions! {
    /// Matrix products.
    CublasLtTable of "libcublasLt" in
        &["libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12", "cublasLt64_13.dll", "cublasLt64_12.dll"];
    cublasLtCreate(Out<Handle>);
    cublasLtMatmulDescCreate(Out<Handle>, c_int, c_int);
    cublasLtMatmulDescSetAttribute(Handle, c_int, *const c_void, usize);
    cublasLtMatmulDescDestroy(Handle);
    cublasLtMatrixLayoutCreate(Out<Handle>, c_int, u64, u64, i64);
    cublasLtMatrixLayoutSetAttribute(Handle, c_int, *const c_void, usize);
    cublasLtMatrixLayoutDestroy(Handle);
    cublasLtMatmulPreferenceCreate(Out<Handle>);
    cublasLtMatmulPreferenceSetAttribute(Handle, c_int, *const c_void, usize);
    cublasLtMatmulPreferenceDestroy(Handle);
    cublasLtMatmulAlgoGetHeuristic(
        Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut c_void, Out<c_int>
    );
    cublasLtMatmul(
        Handle, Handle, *const c_void, *const c_void, Handle, *const c_void, Handle, *const c_void, *const c_void, Handle,
        *mut c_void, Handle, *const c_void, *mut c_void, usize, Handle
    );
}

functions! {
    /// Convolutions.
    CudnnTable of "libcudnn" in &["libcudnn.so.9", "libcudnn.so", "cudnn64_9.dll"];
    cudnnGetVersion() -> usize;
    cudnnGetErrorString(c_int) -> *const c_char;
    cudnnCreate(Out<Handle>);
    cudnnSetStream(Handle, Handle);
    cudnnCreateTensorDescriptor(Out<Handle>);
    cudnnSetTensor4dDescriptor(Handle, c_int, c_int, c_int, c_int, c_int, c_int);
    cudnnDestroyTensorDescriptor(Handle);
    cudnnCreateFilterDescriptor(Out<Handle>);
    cudnnSetFilter4dDescriptor(Handle, c_int, c_int, c_int, c_int, c_int, c_int);
    cudnnDestroyFilterDescriptor(Handle);
    cudnnCreateConvolutionDescriptor(Out<Handle>);
    cudnnSetConvolution2dDescriptor(Handle, c_int, c_int, c_int, c_int, c_int, c_int, c_int, c_int);
    cudnnSetConvolutionGroupCount(Handle, c_int);
    cudnnSetConvolutionMathType(Handle, c_int);
    cudnnDestroyConvolutionDescriptor(Handle);
    cudnnGetConvolution2dForwardOutputDim(Handle, Handle, Handle, Out<c_int>, Out<c_int>, Out<c_int>, Out<c_int>);
    cudnnGetConvolutionForwardAlgorithm_v7(Handle, Handle, Handle, Handle, Handle, c_int, Out<c_int>, *mut c_void);
    cudnnGetConvolutionBackwardDataAlgorithm_v7(Handle, Handle, Handle, Handle, Handle, c_int, Out<c_int>, *mut c_void);
    cudnnGetConvolutionBackwardFilterAlgorithm_v7(Handle, Handle, Handle, Handle, Handle, c_int, Out<c_int>, *mut c_void);
    cudnnConvolutionForward(
        Handle, *const c_void, Handle, *const c_void, Handle, *const c_void, Handle, c_int, *mut c_void, usize,
        *const c_void, Handle, *mut c_void
    );
    cudnnConvolutionBackwardData(
        Handle, *const c_void, Handle, *const c_void, Handle, *const c_void, Handle, c_int, *mut c_void, usize,
        *const c_void, Handle, *mut c_void
    );
    cudnnConvolutionBackwardFilter(
        Handle, *const c_void, Handle, *const c_void, Handle, *const c_void, Handle, c_int, *mut c_void, usize,
        *const c_void, Handle, *mut c_void
    );
}
