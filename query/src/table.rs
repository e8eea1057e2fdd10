//! A table as DataFusion scans it: the files of sealed traces, and streams of record batches of all else.

use crate::derived::Derived;
use crate::logdir::{self, RunRows};
use crate::schema::{TRACE, TableInfo};
use crate::source::{Parquet, Source, Sources};
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

/// Files of a bucket that are checked at once.
const PARALLEL: usize = 16;
/// Batches that wait for who reads them.
const WAITING: usize = 2;
/// Bytes of a file's end that are read first: footers of some hundred row groups, so that remote files take one request less.
const FOOTER: usize = 256 << 10;

/// The source of a table's rows.
pub(crate) enum Rows {
    /// The files of the traces.
    Stored,
    /// An analysis of a trace.
    Derived(Derived),
    /// The content of the logdir.
    Logdir(RunRows),
}

/// A table over all sources.
pub(crate) struct SourceTable {
    pub(crate) info: TableInfo,
    pub(crate) rows: Arc<Rows>,
    pub(crate) sources: Arc<Sources>,
}

impl fmt::Debug for SourceTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceTable").field("name", &self.info.name).finish_non_exhaustive()
    }
}

/// Whether a filter chooses among traces and nothing else.
fn is_of_trace(filter: &Expr) -> bool {
    let columns = filter.column_refs();
    !columns.is_empty() && columns.iter().all(|column| column.name == TRACE) && !filter.is_volatile()
}

#[async_trait]
impl TableProvider for SourceTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.info.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    // Other filters reach the files as well: DataFusion's physical optimizer takes them down to the scan.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match is_of_trace(filter) {
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
            Rows::Logdir(_) => plans.push(self.stream(Vec::new(), projection, limit)?),
            Rows::Derived(_) => streamed = self.chosen(state, filters)?,
            Rows::Stored => {
                let mut files = Vec::new();
                let name = self.info.name;
                let checks = stream::iter(self.chosen(state, filters)?).map(|source| {
                    let sources = Arc::clone(&self.sources);
                    async move {
                        let is_good = sources.is_good(&source, name).await?;
                        Ok::<_, DataFusionError>((source, is_good))
                    }
                });
                let chosen: Vec<_> = checks.buffered(PARALLEL).try_collect().await?;
                for (source, is_good) in chosen {
                    match source.file(name).filter(|_| is_good) {
                        Some(file) => files.extend(file.map(|file| (source, file))),
                        None => streamed.push(source),
                    }
                }
                if !files.is_empty() {
                    plans.push(self.files(state, files, projection, limit).await?);
                }
            }
        }
        if !streamed.is_empty() {
            plans.push(self.stream(streamed, projection, limit)?);
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
    /// The column that has a source's label.
    fn trace_column(&self) -> Result<&Field> {
        Ok(self.info.schema.field_with_name(TRACE)?)
    }

    /// The sources whose labels pass the filters.
    fn chosen(&self, state: &dyn Session, filters: &[Expr]) -> Result<Vec<Arc<Source>>> {
        let all = &self.sources.traces;
        let column = self.trace_column()?;
        let labels = StringViewArray::from_iter_values(all.iter().map(|s| s.label.as_str()));
        let labels: ArrayRef = cast(&labels, column.data_type())?;
        let schema = Arc::new(Schema::new(vec![column.clone()]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![labels])?;
        let schema = DFSchema::try_from(schema)?;
        let mut pass = BooleanArray::from(vec![true; all.len()]);
        for filter in filters.iter().filter(|filter| is_of_trace(filter)) {
            let value = state.create_physical_expr(filter.clone(), &schema)?.evaluate(&batch)?;
            pass = and(&pass, value.into_array(all.len())?.as_boolean())?;
        }
        let passes = |i: &usize| pass.is_valid(*i) && pass.value(*i);
        Ok((0..all.len()).filter(passes).map(|i| Arc::clone(&all[i])).collect())
    }

    /// Scans files: only row groups and pages that can have what is asked for are read.
    async fn files(
        &self,
        state: &dyn Session,
        files: Vec<(Arc<Source>, Parquet)>,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let url = &self.sources.url;
        let store = state.runtime_env().object_store(url)?;
        let trace = Arc::new(self.trace_column()?.clone());
        let mut scanned = Vec::new();
        for (source, file) in files {
            let meta = match file {
                Parquet::Object(meta) => meta,
                Parquet::Local(path) => store.head(&Key::from_absolute_path(path)?).await?,
            };
            let label = ScalarValue::Utf8View(Some(source.label.clone())).cast_to(trace.data_type())?;
            scanned.push(PartitionedFile::new_from_meta(meta).with_partition_values(vec![label]));
        }
        let columns = self.info.schema.fields();
        let of_file = Schema::new(columns.iter().filter(|c| c.name() != TRACE).cloned().collect::<Vec<_>>());
        let schema = TableSchema::builder(Arc::new(of_file)).with_table_partition_cols(vec![trace]).build();
        let options = TableParquetOptions {
            global: state.config_options().execution.parquet.clone(),
            ..TableParquetOptions::default()
        };
        let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
        let source = ParquetSource::new(schema)
            .with_table_parquet_options(options)
            .with_metadata_size_hint(FOOTER)
            .with_parquet_file_reader_factory(Arc::new(CachedParquetFileReaderFactory::new(store, cache)));
        let groups = FileGroup::new(scanned).split_files(state.config_options().execution.target_partitions);
        let config = FileScanConfigBuilder::new(url.clone(), Arc::new(source))
            .with_file_groups(groups)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn stream(
        &self,
        traces: Vec<Arc<Source>>,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = Streamed {
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

/// Rows that are made as they are read. One trace is open at a time, so that a folder of many does not fill the memory.
struct Streamed {
    name: &'static str,
    schema: SchemaRef,
    rows: Arc<Rows>,
    sources: Arc<Sources>,
    traces: Vec<Arc<Source>>,
}

impl fmt::Debug for Streamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} traces", self.name, self.traces.len())
    }
}

impl PartitionStream for Streamed {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), WAITING);
        let to = builder.tx();
        let (name, rows, schema) = (self.name, Arc::clone(&self.rows), Arc::clone(&self.schema));
        let (sources, traces) = (Arc::clone(&self.sources), self.traces.clone());
        builder.spawn_blocking(move || {
            let send = |batch: RecordBatch, label: Option<&str>| to.blocking_send(fit(&batch, label, &schema)).is_ok();
            if let Rows::Logdir(table) = &*rows {
                return logdir::read(&sources, table, &mut |batch| send(batch, None));
            }
            for trace in &traces {
                let store = match sources.store(trace) {
                    Ok(store) => store,
                    // One of many that cannot be read is a warning; the others are read.
                    Err(error) if sources.traces.len() > 1 => {
                        sources.warn(error.to_string());
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                let mut wanted = true;
                let mut take = |batch| {
                    wanted = send(batch, Some(&trace.label));
                    wanted
                };
                match &*rows {
                    Rows::Derived(derived) => {
                        take((derived.rows)(&store)?);
                    }
                    _ => trace_store::seal::batches(&store, name, &mut take)
                        .map_err(|error| DataFusionError::External(Box::new(error)))?,
                }
                if !wanted {
                    break;
                }
            }
            Ok(())
        });
        builder.build()
    }
}

/// The columns of a batch in the table's types, with the trace's label.
fn fit(batch: &RecordBatch, label: Option<&str>, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let mut columns = columns.map(|(column, field)| cast(column, field.data_type())).collect::<Result<Vec<_>, _>>()?;
    if let Some(label) = label {
        let label = ScalarValue::Utf8View(Some(label.to_owned())).to_array_of_size(batch.num_rows())?;
        columns.extend(schema.fields().last().map(|trace| cast(&label, trace.data_type())).transpose()?);
    }
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
