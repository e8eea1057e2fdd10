//! Converts a plan to one that executors can run: replaces streams of this process by rows within the plan, or by a
//! file.

use crate::error::ClusterError;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::array::RecordBatchOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::object_store::ObjectStoreExt;
use datafusion::object_store::path::Path as Key;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::streaming::StreamingTableExec;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most bytes of a table's rows that are sent within the plan. A scheduler accepts messages of 16 MiB, and each
/// task receives its part of the plan.
const MAX_BYTES_IN_PLAN: usize = 2 << 20;

/// Converts the plan of one query.
pub(crate) struct PlanConverter {
    context: Arc<TaskContext>,
    scratch: Option<PathBuf>,
    /// The folder of the files of this plan.
    pub(crate) folder: Option<tempfile::TempDir>,
    n_files: usize,
}

impl PlanConverter {
    pub(crate) fn new(context: Arc<TaskContext>, scratch: Option<PathBuf>) -> Self {
        PlanConverter { context, scratch, folder: None, n_files: 0 }
    }

    /// Returns the plan with each stream of this process replaced by rows or by the scan of a file.
    pub(crate) fn convert(&mut self, plan: Arc<dyn ExecutionPlan>) -> BoxFuture<'_, Result<Arc<dyn ExecutionPlan>>> {
        async move {
            // Ballista sends a scan's limit in 32 bits.
            if plan.fetch().is_some_and(|rows| u32::try_from(rows).is_err()) {
                return Err(ClusterError::LimitTooLarge.into());
            }
            if let Some(table) = plan.downcast_ref::<StreamingTableExec>() {
                let name = table.partitions().iter().map(|rows| format!("{rows:?}")).collect::<Vec<_>>().join(", ");
                return self.convert_table(&name, Arc::clone(&plan)).await;
            }
            let inputs: Vec<Arc<dyn ExecutionPlan>> = plan.children().into_iter().map(Arc::clone).collect();
            let mut children = Vec::new();
            for child in inputs {
                children.push(self.convert(child).await?);
            }
            replace_children_if_necessary(plan, children)
        }
        .boxed()
    }

    /// Reads a table's rows into the plan, or, where they are too many, into a file.
    async fn convert_table(&mut self, name: &str, table: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = table.schema();
        let mut rows = execute_stream(table, Arc::clone(&self.context))?;
        let mut batches = Vec::new();
        let mut n_bytes = 0;
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            n_bytes += batch.get_array_memory_size();
            batches.push(batch);
            if n_bytes > MAX_BYTES_IN_PLAN {
                let file = self.write_file(name, &batches, rows).await?;
                return self.scan_file(&file, schema).await;
            }
        }
        Ok(MemorySourceConfig::try_new_exec(&[batches], schema, None)?)
    }

    async fn write_file(
        &mut self,
        name: &str,
        batches: &[RecordBatch],
        mut rows: SendableRecordBatchStream,
    ) -> Result<PathBuf> {
        let Some(scratch) = &self.scratch else {
            return Err(ClusterError::TooManyRows { table: name.to_owned() }.into());
        };
        let failed = |at: &Path, reason: String| ClusterError::Scratch { path: at.to_owned(), reason };
        if self.folder.is_none() {
            self.folder = Some(new_folder(scratch).map_err(|e| failed(scratch, e.to_string()))?);
        }
        let folder = self.folder.as_ref().map_or(scratch.as_path(), tempfile::TempDir::path);
        let path = folder.join(format!("{}.parquet", self.n_files));
        self.n_files += 1;
        let failed = |reason: String| failed(&path, reason);
        let file = File::create(&path).map_err(|e| failed(e.to_string()))?;
        let zstd = Compression::ZSTD(ZstdLevel::try_new(1).map_err(|e| failed(e.to_string()))?);
        let properties = WriterProperties::builder().set_compression(zstd).build();
        let mut writer =
            ArrowWriter::try_new(file, rows.schema(), Some(properties)).map_err(|e| failed(e.to_string()))?;
        for batch in batches {
            writer.write(batch).map_err(|e| failed(e.to_string()))?;
        }
        while let Some(batch) = rows.next().await {
            writer.write(&batch?).map_err(|e| failed(e.to_string()))?;
        }
        writer.close().map_err(|e| failed(e.to_string()))?;
        Ok(path)
    }

    /// Scans a written file in one partition, like the stream that it replaces: the operators above it rely on that.
    async fn scan_file(&self, file: &Path, schema: SchemaRef) -> Result<Arc<dyn ExecutionPlan>> {
        let url = ObjectStoreUrl::local_filesystem();
        let store = self.context.runtime_env().object_store(&url)?;
        let meta = store.head(&Key::from_absolute_path(file)?).await?;
        let source = Arc::new(ParquetSource::new(schema));
        let config = FileScanConfigBuilder::new(url, source).with_file(PartitionedFile::new_from_meta(meta)).build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

/// Creates a folder that executors of other users can read.
fn new_folder(scratch: &Path) -> std::io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("stepscope-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o755));
    }
    builder.tempdir_in(scratch)
}

/// Returns a batch of the result in the plan's schema: executors may declare other columns as nullable.
pub(crate) fn rows_in_plan(batch: &RecordBatch, schema: SchemaRef) -> Result<RecordBatch> {
    let n_rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema, batch.columns().to_vec(), &n_rows)?)
}
