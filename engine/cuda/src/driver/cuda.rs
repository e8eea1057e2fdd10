//! A device of NVIDIA's driver.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::{Arc, OnceLock};

use super::dnn::Dnn;
use super::libraries::{DriverTable, Handle, LibraryError};
use super::lt::Lt;
use super::nvrtc::Compiler;
use crate::backend::{Address, Backend, Event, Failed, Function, Gemm, Grid, Lane};
use crate::convolution::{Convolution, Pass};

/// `CUDA_ERROR_NOT_READY`.
const NOT_READY: c_int = 600;
/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`.
const PEER_ALREADY: c_int = 704;
/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: c_uint = 1;
/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: c_uint = 2;
/// `CU_MEMHOSTALLOC_PORTABLE`: pinned for all contexts.
const PORTABLE: c_uint = 1;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
const CAPABILITY: (c_int, c_int) = (75, 76);
/// Memory that matrix products may use for themselves: what cuBLAS takes on large devices.
const WORKSPACE: usize = 32 << 20;

/// The driver's library.
pub struct Driver {
    table: DriverTable,
    n_devices: usize,
}

impl Driver {
    /// The driver of this machine, looked for once.
    ///
    /// # Errors
    /// There is none, or it does not start: in words.
    pub fn get() -> Result<&'static Driver, &'static str> {
        static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
        DRIVER.get_or_init(Driver::load).as_ref().map_err(String::as_str)
    }

    fn load() -> Result<Driver, String> {
        let table = DriverTable::load().map_err(|e| e.to_string())?;
        let mut driver = Driver { table, n_devices: 0 };
        let mut n = 0;
        // SAFETY: no conditions.
        driver.check("cuInit", unsafe { (driver.table.cuInit)(0) }).map_err(|e| e.to_string())?;
        // SAFETY: writes a number.
        let counted = unsafe { (driver.table.cuDeviceGetCount)(&raw mut n) };
        driver.check("cuDeviceGetCount", counted).map_err(|e| e.to_string())?;
        driver.n_devices = usize::try_from(n).unwrap_or(0);
        super::libraries::prefer(driver.version().0);
        Ok(driver)
    }

    /// How many devices there are.
    pub fn n_devices(&self) -> usize {
        self.n_devices
    }

    /// The newest CUDA that the driver knows: 13, 0.
    pub fn version(&self) -> (i32, i32) {
        let mut version = 0;
        // SAFETY: writes a number.
        unsafe { (self.table.cuDriverGetVersion)(&raw mut version) };
        (version / 1000, version % 1000 / 10)
    }

    fn check(&self, call: &'static str, result: c_int) -> Result<(), Failed> {
        if result == 0 {
            return Ok(());
        }
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: writes a pointer to a static text, or null.
        let status = unsafe { (self.table.cuGetErrorString)(result, &raw mut text) };
        let words = if status == 0 && !text.is_null() {
            // SAFETY: a static text of the driver's.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        } else {
            "an error that the driver has no words for".to_owned()
        };
        Err(Failed { call, reason: format!("{words} ({result})") })
    }
}

/// A device.
pub struct Cuda {
    driver: &'static Driver,
    name: String,
    capability: u32,
    context: Handle,
    streams: [Handle; 4],
    compiler: Arc<Compiler>,
    /// Why there are no matrix products by the library, where there are none.
    lt: Result<Lt, String>,
    /// Looked for when there is something to convolve: it takes its time to start.
    dnn: OnceLock<Result<Option<Dnn>, Failed>>,
}

// SAFETY: the driver's functions may be called from any thread; handles live as long as the process.
unsafe impl Send for Cuda {}
// SAFETY: as above.
unsafe impl Sync for Cuda {}

impl Cuda {
    /// Device `idx`.
    ///
    /// # Errors
    /// There is no such device, it does not start, or there is no run-time compiler: in words.
    pub fn open(idx: usize) -> Result<Cuda, String> {
        let driver = Driver::get()?;
        if idx >= driver.n_devices {
            return Err(format!("there are {} CUDA devices", driver.n_devices));
        }
        let missing =
            |e: LibraryError| format!("{e}: it comes with the CUDA toolkit, or `pip install nvidia-cuda-nvrtc`");
        let compiler = Arc::new(Compiler::load().map_err(missing)?);
        Cuda::start(driver, idx, compiler).map_err(|e| e.to_string())
    }

    fn start(driver: &'static Driver, idx: usize, compiler: Arc<Compiler>) -> Result<Cuda, Failed> {
        let t = &driver.table;
        let (mut device, mut context, mut streams) = (0, std::ptr::null_mut(), [std::ptr::null_mut(); 4]);
        let (mut name, mut major, mut minor) = ([0 as c_char; 256], 0, 0);
        // SAFETY: each writes one value to the address that it is given; the name gets at most 255 characters and a zero.
        unsafe {
            driver.check("cuDeviceGet", (t.cuDeviceGet)(&raw mut device, idx as c_int))?;
            driver.check("cuDeviceGetName", (t.cuDeviceGetName)(name.as_mut_ptr(), 255, device))?;
            driver.check("cuDeviceGetAttribute", (t.cuDeviceGetAttribute)(&raw mut major, CAPABILITY.0, device))?;
            driver.check("cuDeviceGetAttribute", (t.cuDeviceGetAttribute)(&raw mut minor, CAPABILITY.1, device))?;
            driver.check("cuDevicePrimaryCtxRetain", (t.cuDevicePrimaryCtxRetain)(&raw mut context, device))?;
            driver.check("cuCtxSetCurrent", (t.cuCtxSetCurrent)(context))?;
            for stream in &mut streams {
                driver.check("cuStreamCreate", (t.cuStreamCreate)(stream, NON_BLOCKING))?;
            }
        }
        // SAFETY: the driver ended it with a zero.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        let capability = u32::try_from(10 * major + minor).unwrap_or(0);
        let lt = Err("not loaded".to_owned());
        let dnn = OnceLock::new();
        let mut cuda = Cuda { driver, name, capability, context, streams, compiler, lt, dnn };
        let workspace = (cuda.alloc(WORKSPACE)?, WORKSPACE);
        cuda.lt = match Lt::load(workspace) {
            Ok(lt) => lt.map_err(|e| e.to_string()),
            Err(missing) => Err(missing.to_string()),
        };
        Ok(cuda)
    }

    /// The compute capability: 90 for 9.0.
    pub fn capability(&self) -> u32 {
        self.capability
    }

    /// Why matrix products run on this crate's own kernels, where they do.
    pub fn no_library(&self) -> Option<&str> {
        self.lt.as_ref().err().map(String::as_str)
    }

    fn stream(&self, lane: Lane) -> Handle {
        self.streams[lane as usize]
    }

    /// The library for convolutions, with the device's context current in this thread; `None`: there is none.
    fn dnn(&self) -> Result<Option<&Dnn>, Failed> {
        self.call("cuCtxSetCurrent", |_| 0)?;
        let load = || Dnn::load(self.stream(Lane::Compute));
        self.dnn.get_or_init(load).as_ref().map(Option::as_ref).map_err(Failed::clone)
    }

    /// Calls the driver with the device's context current in this thread.
    fn call(&self, name: &'static str, f: impl FnOnce(&DriverTable) -> c_int) -> Result<(), Failed> {
        let t = &self.driver.table;
        // SAFETY: the context lives as long as the process.
        self.driver.check("cuCtxSetCurrent", unsafe { (t.cuCtxSetCurrent)(self.context) })?;
        self.driver.check(name, f(t))
    }
}

// SAFETY: calls mean what the trait says; the driver's documentation has each.
unsafe impl Backend for Cuda {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn memory(&self) -> Result<(usize, usize), Failed> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two numbers.
        self.call("cuMemGetInfo", |t| unsafe { (t.cuMemGetInfo_v2)(&raw mut free, &raw mut total) })?;
        Ok((free, total))
    }

    fn alloc(&self, n_bytes: usize) -> Result<Address, Failed> {
        let mut address = 0;
        // SAFETY: writes an address.
        self.call("cuMemAlloc", |t| unsafe { (t.cuMemAlloc_v2)(&raw mut address, n_bytes) })?;
        Ok(address)
    }

    fn free(&self, address: Address) {
        // Nothing is left to be done about a failure. SAFETY: the caller got it from `alloc`.
        let _ = self.call("cuMemFree", |t| unsafe { (t.cuMemFree_v2)(address) });
    }

    fn alloc_pinned(&self, n_bytes: usize) -> Result<*mut u8, Failed> {
        let mut at = std::ptr::null_mut();
        // SAFETY: writes a pointer.
        self.call("cuMemHostAlloc", |t| unsafe { (t.cuMemHostAlloc)(&raw mut at, n_bytes, PORTABLE) })?;
        Ok(at.cast())
    }

    unsafe fn free_pinned(&self, at: *mut u8) {
        // SAFETY: as the caller promises.
        let _ = self.call("cuMemFreeHost", |t| unsafe { (t.cuMemFreeHost)(at.cast()) });
    }

    unsafe fn copy_to_device(&self, lane: Lane, to: Address, from: *const u8, n_bytes: usize) -> Result<(), Failed> {
        let stream = self.stream(lane);
        // SAFETY: as the caller promises.
        self.call("cuMemcpyHtoDAsync", |t| unsafe { (t.cuMemcpyHtoDAsync_v2)(to, from.cast(), n_bytes, stream) })
    }

    unsafe fn copy_to_host(&self, lane: Lane, to: *mut u8, from: Address, n_bytes: usize) -> Result<(), Failed> {
        let stream = self.stream(lane);
        // SAFETY: as the caller promises.
        self.call("cuMemcpyDtoHAsync", |t| unsafe { (t.cuMemcpyDtoHAsync_v2)(to.cast(), from, n_bytes, stream) })
    }

    fn copy(&self, lane: Lane, to: Address, from: Address, n_bytes: usize) -> Result<(), Failed> {
        let stream = self.stream(lane);
        // SAFETY: the device's own memory, which the caller owns.
        self.call("cuMemcpyDtoDAsync", |t| unsafe { (t.cuMemcpyDtoDAsync_v2)(to, from, n_bytes, stream) })
    }

    fn copy_from_peer(&self, to: Address, peer: usize, from: Address, n_bytes: usize) -> Result<(), Failed> {
        let (stream, peer, own) = (self.stream(Lane::Peer), peer as Handle, self.context);
        self.call("cuCtxEnablePeerAccess", |t| {
            // Without it, or where it is refused, the driver copies through the host. SAFETY: a context of the process.
            let _: c_int = match unsafe { (t.cuCtxEnablePeerAccess)(peer, 0) } {
                PEER_ALREADY => 0,
                other => other,
            };
            0
        })?;
        // SAFETY: memory of the two devices, which the caller owns.
        self.call("cuMemcpyPeerAsync", |t| unsafe { (t.cuMemcpyPeerAsync)(to, own, from, peer, n_bytes, stream) })
    }

    fn context(&self) -> usize {
        self.context as usize
    }

    fn fill_words(&self, lane: Lane, to: Address, word: u32, n: usize) -> Result<(), Failed> {
        let stream = self.stream(lane);
        // SAFETY: the device's own memory, which the caller owns.
        self.call("cuMemsetD32Async", |t| unsafe { (t.cuMemsetD32Async)(to, word, n, stream) })
    }

    fn fill_bytes(&self, lane: Lane, to: Address, byte: u8, n: usize) -> Result<(), Failed> {
        let stream = self.stream(lane);
        // SAFETY: the device's own memory, which the caller owns.
        self.call("cuMemsetD8Async", |t| unsafe { (t.cuMemsetD8Async)(to, byte, n, stream) })
    }

    fn event(&self) -> Result<Event, Failed> {
        let mut event: Handle = std::ptr::null_mut();
        // SAFETY: writes a handle.
        self.call("cuEventCreate", |t| unsafe { (t.cuEventCreate)(&raw mut event, DISABLE_TIMING) })?;
        Ok(Event(event as usize))
    }

    fn record(&self, event: Event, lane: Lane) -> Result<(), Failed> {
        let stream = self.stream(lane);
        // SAFETY: an event and a stream of the process.
        self.call("cuEventRecord", |t| unsafe { (t.cuEventRecord)(event.0 as Handle, stream) })
    }

    fn wait(&self, lane: Lane, event: Event) -> Result<(), Failed> {
        let stream = self.stream(lane);
        // SAFETY: an event and a stream of the process.
        self.call("cuStreamWaitEvent", |t| unsafe { (t.cuStreamWaitEvent)(stream, event.0 as Handle, 0) })
    }

    fn is_past(&self, event: Event) -> Result<bool, Failed> {
        let mut is_ready = true;
        self.call("cuEventQuery", |t| {
            // SAFETY: an event of the process.
            let result = unsafe { (t.cuEventQuery)(event.0 as Handle) };
            is_ready = result != NOT_READY;
            if is_ready { result } else { 0 }
        })?;
        Ok(is_ready)
    }

    fn synchronise(&self, lane: Lane) -> Result<(), Failed> {
        let stream = self.stream(lane);
        // SAFETY: a stream of the process.
        self.call("cuStreamSynchronize", |t| unsafe { (t.cuStreamSynchronize)(stream) })
    }

    fn compile(&self, source: &str, macros: &[String], names: &[&str]) -> Result<Vec<Function>, Failed> {
        let image = self.compiler.compile(source, macros, self.compiler.target(self.capability))?;
        let mut module: Handle = std::ptr::null_mut();
        // SAFETY: an image that ends in a zero; writes a handle.
        self.call("cuModuleLoadData", |t| unsafe { (t.cuModuleLoadData)(&raw mut module, image.as_ptr().cast()) })?;
        let function = |name: &&str| {
            let bad = |_| Failed { call: "cuModuleGetFunction", reason: "a zero in a name".to_owned() };
            let name = CString::new(*name).map_err(bad)?;
            let mut found: Handle = std::ptr::null_mut();
            // SAFETY: a module and a text that ends in a zero; writes a handle.
            self.call("cuModuleGetFunction", |t| unsafe {
                (t.cuModuleGetFunction)(&raw mut found, module, name.as_ptr())
            })?;
            Ok(Function(found as usize))
        };
        names.iter().map(function).collect()
    }

    unsafe fn launch(&self, function: Function, grid: Grid, arguments: &mut [*mut c_void]) -> Result<(), Failed> {
        let (stream, [x, y, z]) = (self.stream(Lane::Compute), grid.blocks);
        let (function, none) = (function.0 as Handle, std::ptr::null_mut());
        // SAFETY: as the caller promises of the arguments; they are read before it returns.
        self.call("cuLaunchKernel", |t| unsafe {
            (t.cuLaunchKernel)(function, x, y, z, grid.threads, 1, 1, 0, stream, arguments.as_mut_ptr(), none)
        })
    }

    fn gemm(&self, gemm: &Gemm, way: usize, a: Address, b: Address, c: Address) -> Result<bool, Failed> {
        let Ok(lt) = &self.lt else { return Ok(false) };
        self.call("cuCtxSetCurrent", |_| 0)?;
        lt.multiply(gemm, way, [a, b, c], self.stream(Lane::Compute))
    }

    fn convolution_workspace(&self, convolution: &Convolution, pass: Pass) -> Result<Option<usize>, Failed> {
        self.dnn()?.map_or(Ok(None), |dnn| dnn.workspace(convolution, pass))
    }

    fn convolve(
        &self,
        convolution: &Convolution,
        pass: Pass,
        at: [Address; 3],
        workspace: (Address, usize),
    ) -> Result<(), Failed> {
        let missing = || Failed { call: "convolve", reason: "there is no cuDNN".to_owned() };
        self.dnn()?.ok_or_else(missing)?.convolve(convolution, pass, at, workspace)
    }
}
