//! A table as a DataFusion table provider: it scans the files of sealed traces, and streams the rows of all others.

use crate::derived::DerivedTable;
use crate::logdir::{self, LogdirTable};
use crate::schema::{TRACE_COLUMN, TableInfo};
use crate::source::{ParquetFile, Source, Sources};
use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringViewArray};
use datafusion::arrow::compute::{and, cast};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DFSchema;
use datafusion::config::TableParquetOptions;
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::CachedParquetFileReaderFactory;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::object_store::ObjectStoreExt;
use datafusion::object_store::path::Path as Key;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::union::UnionExec;
use datafusion::scalar::ScalarValue;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::fmt;
use std::sync::Arc;

/// The most files of a bucket that are checked at a time.
const N_PARALLEL_CHECKS: usize = 16;
/// The capacity of a stream, batches.
const STREAM_CAPACITY: usize = 2;
/// The bytes at the end of a file that are read first. They hold footers of several hundred row groups, which saves a
/// request for remote files.
const FOOTER_BYTES: usize = 256 << 10;

/// The source of a table's rows.
pub(crate) enum RowSource {
    /// The Parquet files of the traces.
    Stored,
    /// An analysis of a trace.
    Derived(DerivedTable),
    /// The content of the logdir.
    Logdir(LogdirTable),
}

/// A table over all sources.
pub(crate) struct SourceTable {
    pub(crate) info: TableInfo,
    pub(crate) rows: Arc<RowSource>,
    pub(crate) sources: Arc<Sources>,
}

impl fmt::Debug for SourceTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceTable").field("name", &self.info.name).finish_non_exhaustive()
    }
}

/// Whether a filter uses only the column of the trace.
fn is_trace_filter(filter: &Expr) -> bool {
    let columns = filter.column_refs();
    !columns.is_empty() && columns.iter().all(|column| column.name == TRACE_COLUMN) && !filter.is_volatile()
}

#[async_trait]
impl TableProvider for SourceTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.info.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    // Other filters are pushed down to the scans of files by DataFusion's physical optimizer.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match is_trace_filter(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut plans: Vec<Arc<dyn ExecutionPlan>> = Vec::new();
        let mut streamed = Vec::new();
        match *self.rows {
            RowSource::Logdir(_) => plans.push(self.stream_rows(Vec::new(), projection, limit)?),
            RowSource::Derived(_) => streamed = self.filtered_sources(state, filters)?,
            RowSource::Stored => {
                let mut files = Vec::new();
                let name = self.info.name;
                let checks = stream::iter(self.filtered_sources(state, filters)?).map(|source| {
                    let sources = Arc::clone(&self.sources);
                    async move {
                        let is_undamaged = sources.is_undamaged(&source, name).await?;
                        Ok::<_, DataFusionError>((source, is_undamaged))
                    }
                });
                let checked: Vec<_> = checks.buffered(N_PARALLEL_CHECKS).try_collect().await?;
                for (source, is_undamaged) in checked {
                    match source.parquet_file(name).filter(|_| is_undamaged) {
                        Some(file) => files.extend(file.map(|file| (source, file))),
                        None => streamed.push(source),
                    }
                }
                if !files.is_empty() {
                    plans.push(self.scan_files(state, files, projection, limit).await?);
                }
            }
        }
        if !streamed.is_empty() {
            plans.push(self.stream_rows(streamed, projection, limit)?);
        }
        if plans.is_empty() {
            let schema = self.schema();
            let schema = projection.map_or(Ok(Arc::clone(&schema)), |columns| schema.project(columns).map(Arc::new))?;
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        UnionExec::try_new(plans)
    }
}

impl SourceTable {
    /// The column of the trace's label.
    fn trace_column(&self) -> Result<&Field> {
        Ok(self.info.schema.field_with_name(TRACE_COLUMN)?)
    }

    /// The sources whose labels pass the filters.
    fn filtered_sources(&self, state: &dyn Session, filters: &[Expr]) -> Result<Vec<Arc<Source>>> {
        let all = &self.sources.traces;
        let column = self.trace_column()?;
        let labels = StringViewArray::from_iter_values(all.iter().map(|s| s.label.as_str()));
        let labels: ArrayRef = cast(&labels, column.data_type())?;
        let schema = Arc::new(Schema::new(vec![column.clone()]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![labels])?;
        let schema = DFSchema::try_from(schema)?;
        let mut pass = BooleanArray::from(vec![true; all.len()]);
        for filter in filters.iter().filter(|filter| is_trace_filter(filter)) {
            let value = state.create_physical_expr(filter.clone(), &schema)?.evaluate(&batch)?;
            pass = and(&pass, value.into_array(all.len())?.as_boolean())?;
        }
        let passes = |i: &usize| pass.is_valid(*i) && pass.value(*i);
        Ok((0..all.len()).filter(passes).map(|i| Arc::clone(&all[i])).collect())
    }

    /// Scans files. Reads only the row groups and pages that may have matching rows.
    async fn scan_files(
        &self,
        state: &dyn Session,
        files: Vec<(Arc<Source>, ParquetFile)>,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let url = &self.sources.url;
        let store = state.runtime_env().object_store(url)?;
        let trace = Arc::new(self.trace_column()?.clone());
        let mut scanned = Vec::new();
        for (source, file) in files {
            let meta = match file {
                ParquetFile::Object(meta) => meta,
                ParquetFile::Local(path) => store.head(&Key::from_absolute_path(path)?).await?,
            };
            let label = ScalarValue::Utf8View(Some(source.label.clone())).cast_to(trace.data_type())?;
            scanned.push(PartitionedFile::new_from_meta(meta).with_partition_values(vec![label]));
        }
        let columns = self.info.schema.fields();
        let file_schema = Schema::new(columns.iter().filter(|c| c.name() != TRACE_COLUMN).cloned().collect::<Vec<_>>());
        let schema = TableSchema::builder(Arc::new(file_schema)).with_table_partition_cols(vec![trace]).build();
        let options = TableParquetOptions {
            global: state.config_options().execution.parquet.clone(),
            ..TableParquetOptions::default()
        };
        let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
        let source = ParquetSource::new(schema)
            .with_table_parquet_options(options)
            .with_metadata_size_hint(FOOTER_BYTES)
            .with_parquet_file_reader_factory(Arc::new(CachedParquetFileReaderFactory::new(store, cache)));
        let groups = FileGroup::new(scanned).split_files(state.config_options().execution.target_partitions);
        let config = FileScanConfigBuilder::new(url.clone(), Arc::new(source))
            .with_file_groups(groups)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn stream_rows(
        &self,
        traces: Vec<Arc<Source>>,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = RowStream {
            name: self.info.name,
            schema: self.schema(),
            rows: Arc::clone(&self.rows),
            sources: Arc::clone(&self.sources),
            traces,
        };
        let schema = self.schema();
        Ok(Arc::new(StreamingTableExec::try_new(schema, vec![Arc::new(rows)], projection, None, false, limit)?))
    }
}

/// Rows that are computed while they are read. One trace is open at a time, so that a folder of many does not fill the
/// memory.
struct RowStream {
    name: &'static str,
    schema: SchemaRef,
    rows: Arc<RowSource>,
    sources: Arc<Sources>,
    traces: Vec<Arc<Source>>,
}

impl fmt::Debug for RowStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} traces", self.name, self.traces.len())
    }
}

impl PartitionStream for RowStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), STREAM_CAPACITY);
        let sender = builder.tx();
        let (name, rows, schema) = (self.name, Arc::clone(&self.rows), Arc::clone(&self.schema));
        let (sources, traces) = (Arc::clone(&self.sources), self.traces.clone());
        builder.spawn_blocking(move || {
            let send = |batch: RecordBatch, label: Option<&str>| {
                sender.blocking_send(cast_batch(&batch, label, &schema)).is_ok()
            };
            if let RowSource::Logdir(table) = &*rows {
                return logdir::read(&sources, table, &mut |batch| send(batch, None));
            }
            for trace in &traces {
                let store = match sources.store(trace) {
                    Ok(store) => store,
                    // With several traces one that cannot be read is a warning, not an error of the query.
                    Err(error) if sources.traces.len() > 1 => {
                        sources.warn(error.to_string());
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                let mut wants_more = true;
                let mut sink = |batch| {
                    wants_more = send(batch, Some(&trace.label));
                    wants_more
                };
                match &*rows {
                    RowSource::Derived(derived) => {
                        sink((derived.rows)(&store)?);
                    }
                    _ => trace_store::seal::batches(&store, name, &mut sink)
                        .map_err(|error| DataFusionError::External(Box::new(error)))?,
                }
                if !wants_more {
                    break;
                }
            }
            Ok(())
        });
        builder.build()
    }
}

/// Casts the columns of a batch to the table's types, and adds the trace's label.
fn cast_batch(batch: &RecordBatch, label: Option<&str>, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let mut columns = columns.map(|(column, field)| cast(column, field.data_type())).collect::<Result<Vec<_>, _>>()?;
    if let Some(label) = label {
        let label = ScalarValue::Utf8View(Some(label.to_owned())).to_array_of_size(batch.num_rows())?;
        columns.extend(schema.fields().last().map(|trace| cast(&label, trace.data_type())).transpose()?);
    }
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
