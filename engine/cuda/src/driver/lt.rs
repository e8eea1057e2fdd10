//! cuBLASLt: matrix products. What was looked up for a product of some sizes is kept.

use std::ffi::{c_int, c_void};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::libraries::{CublasLtTable, Handle, LibraryError};
use crate::backend::{Address, Failed, Gemm, MatrixType};

// `cublasComputeType_t`, `cudaDataType_t`, and the attributes' numbers.
const COMPUTE_32F: c_int = 68;
const COMPUTE_32F_FAST_TF32: c_int = 77;
const COMPUTE_64F: c_int = 70;
const R_32F: c_int = 0;
const R_64F: c_int = 1;
const R_16F: c_int = 2;
const R_16BF: c_int = 14;
const DESC_TRANSA: c_int = 3;
const DESC_TRANSB: c_int = 4;
const LAYOUT_BATCH_COUNT: c_int = 5;
const LAYOUT_STRIDED_BATCH_OFFSET: c_int = 6;
const PREF_MAX_WORKSPACE_BYTES: c_int = 1;
/// Of a, b, c and d.
const PREF_MIN_ALIGNMENTS: [c_int; 4] = [5, 6, 7, 8];

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Heuristic {
    algorithm: [u64; 8],
    workspace: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

const _: () = assert!(size_of::<Heuristic>() == 96);

/// A product of known sizes.
struct Prepared {
    operation: Handle,
    layouts: [Handle; 3],
    algorithm: [u64; 8],
}

/// The library with a device's workspace.
pub(super) struct Lt {
    table: CublasLtTable,
    handle: Handle,
    workspace: (Address, usize),
    /// By product, the addresses' alignment, and way; `None`: there are not so many ways.
    prepared: Mutex<FxHashMap<(Gemm, u32, usize), Option<Prepared>>>,
}

// SAFETY: NVIDIA says that the handle may be used from several threads; descriptors are only made and used under the lock.
unsafe impl Send for Lt {}
// SAFETY: as above.
unsafe impl Sync for Lt {}

/// Ways of multiplying that are asked for at most.
const MAX_WAYS: usize = 32;
/// Sizes that are kept; then all are looked up again.
const MAX_PREPARED: usize = 4096;

fn check(call: &'static str, status: c_int) -> Result<(), Failed> {
    if status == 0 { Ok(()) } else { Err(Failed { call, reason: format!("cublasStatus {status}") }) }
}

impl Prepared {
    fn destroy(&self, table: &CublasLtTable) {
        // SAFETY: each was made by the library, and is destroyed once.
        unsafe {
            (table.cublasLtMatmulDescDestroy)(self.operation);
            for layout in self.layouts {
                (table.cublasLtMatrixLayoutDestroy)(layout);
            }
        }
    }
}

impl Lt {
    /// Finds the library, for the device whose context is current.
    pub fn load(workspace: (Address, usize)) -> Result<Result<Lt, Failed>, LibraryError> {
        let table = CublasLtTable::load()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes a handle.
        let created = unsafe { (table.cublasLtCreate)(&raw mut handle) };
        Ok(check("cublasLtCreate", created).map(|()| Lt { table, handle, workspace, prepared: Mutex::default() }))
    }

    /// Multiplies on a stream, in one of the ways that the library knows, the best first by its own judgement. `false`: it does not
    /// know so many.
    pub fn multiply(&self, gemm: &Gemm, way: usize, [a, b, c]: [Address; 3], stream: Handle) -> Result<bool, Failed> {
        // What all addresses are multiples of: algorithms differ in what they need.
        let size = match gemm.of {
            MatrixType::F64 => 8,
            MatrixType::F32 | MatrixType::Tf32 => 4,
            MatrixType::F16 | MatrixType::Bf16 => 2,
        };
        let of_batch = gemm.strides.iter().fold(0, |all, stride| all | (stride * size) as u64);
        let batches = if gemm.n_batches > 1 { of_batch } else { 0 };
        let alignment = 1u32 << (a | b | c | batches).trailing_zeros().min(8);
        let key = (*gemm, alignment, way);
        let mut prepared = self.prepared.lock();
        if !prepared.contains_key(&key) {
            if prepared.len() >= MAX_PREPARED {
                prepared.drain().filter_map(|(_, old)| old).for_each(|old| old.destroy(&self.table));
            }
            prepared.insert(key, self.prepare(gemm, alignment, way)?);
        }
        let Some(Some(found)) = prepared.get(&key) else { return Ok(false) };
        let [layout_a, layout_b, layout_c] = found.layouts;
        // Factors are of the scale type: 64 bits for 64, else 32.
        let (wide, narrow) = ([1f64, f64::from(u8::from(gemm.adds))], [1f32, f32::from(u8::from(gemm.adds))]);
        let factors: [*const c_void; 2] = match gemm.of {
            MatrixType::F64 => [(&raw const wide[0]).cast(), (&raw const wide[1]).cast()],
            _ => [(&raw const narrow[0]).cast(), (&raw const narrow[1]).cast()],
        };
        // SAFETY: addresses are the caller's; the descriptors are alive under the lock; factors are read before it returns.
        let status = unsafe {
            (self.table.cublasLtMatmul)(
                self.handle,
                found.operation,
                factors[0],
                a as *const c_void,
                layout_a,
                b as *const c_void,
                layout_b,
                factors[1],
                c as *const c_void,
                layout_c,
                c as *mut c_void,
                layout_c,
                found.algorithm.as_ptr().cast(),
                self.workspace.0 as *mut c_void,
                self.workspace.1,
                stream,
            )
        };
        check("cublasLtMatmul", status).map(|()| true)
    }

    fn prepare(&self, gemm: &Gemm, alignment: u32, way: usize) -> Result<Option<Prepared>, Failed> {
        let (compute, scale, of) = match gemm.of {
            MatrixType::F32 => (COMPUTE_32F, R_32F, R_32F),
            MatrixType::Tf32 => (COMPUTE_32F_FAST_TF32, R_32F, R_32F),
            MatrixType::F64 => (COMPUTE_64F, R_64F, R_64F),
            MatrixType::F16 => (COMPUTE_32F, R_32F, R_16F),
            MatrixType::Bf16 => (COMPUTE_32F, R_32F, R_16BF),
        };
        let table = &self.table;
        let mut made =
            Prepared { operation: std::ptr::null_mut(), layouts: [std::ptr::null_mut(); 3], algorithm: [0; 8] };
        // SAFETY: writes a handle; attributes are 32-bit numbers.
        unsafe {
            check(
                "cublasLtMatmulDescCreate",
                (table.cublasLtMatmulDescCreate)(&raw mut made.operation, compute, scale),
            )?;
            for (attribute, is) in [(DESC_TRANSA, gemm.transpose_a), (DESC_TRANSB, gemm.transpose_b)] {
                let value = c_int::from(is);
                let set = (table.cublasLtMatmulDescSetAttribute)(
                    made.operation,
                    attribute,
                    (&raw const value).cast(),
                    size_of::<c_int>(),
                );
                check("cublasLtMatmulDescSetAttribute", set)?;
            }
        }
        let turned = |is: bool, rows: usize, columns: usize| if is { (columns, rows) } else { (rows, columns) };
        let sides = [
            (turned(gemm.transpose_a, gemm.m, gemm.k), gemm.lda),
            (turned(gemm.transpose_b, gemm.k, gemm.n), gemm.ldb),
            ((gemm.m, gemm.n), gemm.ldc),
        ];
        for (i, ((rows, columns), ld)) in sides.into_iter().enumerate() {
            made.layouts[i] = self.layout(of, rows, columns, ld, gemm.n_batches, gemm.strides[i])?;
        }
        match self.algorithm(&made, alignment, way)? {
            Some(algorithm) => Ok(Some(Prepared { algorithm, ..made })),
            None => {
                made.destroy(table);
                Ok(None)
            }
        }
    }

    fn layout(
        &self,
        of: c_int,
        rows: usize,
        columns: usize,
        ld: usize,
        n_batches: usize,
        stride: usize,
    ) -> Result<Handle, Failed> {
        let table = &self.table;
        let mut layout = std::ptr::null_mut();
        let (n, stride) = (n_batches as i32, stride as i64);
        // SAFETY: writes a handle; the batch count is a 32-bit number, the offset a 64-bit one.
        unsafe {
            let made = (table.cublasLtMatrixLayoutCreate)(&raw mut layout, of, rows as u64, columns as u64, ld as i64);
            check("cublasLtMatrixLayoutCreate", made)?;
            if n_batches > 1 {
                let set = table.cublasLtMatrixLayoutSetAttribute;
                check("cublasLtMatrixLayoutSetAttribute", set(layout, LAYOUT_BATCH_COUNT, (&raw const n).cast(), 4))?;
                let stride = (&raw const stride).cast();
                check("cublasLtMatrixLayoutSetAttribute", set(layout, LAYOUT_STRIDED_BATCH_OFFSET, stride, 8))?;
            }
        }
        Ok(layout)
    }

    /// What the library would do, in its `way`-th way.
    fn algorithm(&self, of: &Prepared, alignment: u32, way: usize) -> Result<Option<[u64; 8]>, Failed> {
        if way >= MAX_WAYS {
            return Ok(None);
        }
        let table = &self.table;
        let mut preference = std::ptr::null_mut();
        let none = Heuristic { algorithm: [0; 8], workspace: 0, state: 0, waves: 0.0, reserved: [0; 4] };
        let mut found = [none; MAX_WAYS];
        let (mut n, workspace) = (0 as c_int, self.workspace.1 as u64);
        let [a, b, c] = of.layouts;
        // SAFETY: writes a handle, then at most so many results, whose layout is NVIDIA's.
        let status = unsafe {
            check("cublasLtMatmulPreferenceCreate", (table.cublasLtMatmulPreferenceCreate)(&raw mut preference))?;
            (table.cublasLtMatmulPreferenceSetAttribute)(
                preference,
                PREF_MAX_WORKSPACE_BYTES,
                (&raw const workspace).cast(),
                8,
            );
            for attribute in PREF_MIN_ALIGNMENTS {
                let set = table.cublasLtMatmulPreferenceSetAttribute;
                set(preference, attribute, (&raw const alignment).cast(), 4);
            }
            let out = found.as_mut_ptr().cast();
            let status = (table.cublasLtMatmulAlgoGetHeuristic)(
                self.handle,
                of.operation,
                a,
                b,
                c,
                c,
                preference,
                way as c_int + 1,
                out,
                &raw mut n,
            );
            (table.cublasLtMatmulPreferenceDestroy)(preference);
            status
        };
        check("cublasLtMatmulAlgoGetHeuristic", status)?;
        // The first way must be there: 15 is "not supported".
        let got = usize::try_from(n).unwrap_or(0).min(MAX_WAYS);
        check("cublasLtMatmulAlgoGetHeuristic", if got == 0 && way == 0 { 15 } else { 0 })?;
        let Some(found) = found[..got].get(way) else { return Ok(None) };
        check("cublasLtMatmulAlgoGetHeuristic", found.state)?;
        Ok(Some(found.algorithm))
    }
}
