//! A database: the tables of a path or URL, and queries on them.

use crate::cluster::Cluster;
use crate::error::QueryError;
use crate::output::{Format, QueryResult, Writer, cells};
use crate::schema::{self, TableInfo};
use crate::source::Sources;
use crate::table::{RowSource, SourceTable};
use crate::{derived, logdir};
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{DataFrame, SQLOptions, SessionConfig, SessionContext};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use std::io::Write;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// The number of memory consumers that an out-of-memory error names.
const N_NAMED_CONSUMERS: NonZeroUsize = NonZeroUsize::new(3).expect("3 is not 0");

/// The resources of a query.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The memory that sorting, grouping and joining may take, bytes; beyond it they use temporary files. Unsealed
    /// traces, which are read into memory as a whole, are not counted.
    pub memory_bytes: usize,
    /// The number of threads, and of partitions. `None` for one per CPU, or on a cluster for the cluster's number.
    pub threads: Option<NonZeroUsize>,
}

impl Default for Options {
    fn default() -> Self {
        Options { memory_bytes: 2 << 30, threads: None }
    }
}

/// The content of a path or URL as tables.
pub struct Database {
    context: SessionContext,
    sources: Arc<Sources>,
    tables: Vec<TableInfo>,
    cluster: Option<Arc<dyn Cluster>>,
    /// `Some` until this is dropped.
    runtime: Option<Runtime>,
    cancel_request: Arc<Notify>,
}

/// A handle with which another thread ends a query.
#[derive(Clone, Debug)]
pub struct Canceller(Arc<Notify>);

impl Canceller {
    /// Ends the query that runs, or else the next one, with [`QueryError::Cancelled`].
    pub fn cancel(&self) {
        self.0.notify_one();
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // In the background: a thread that opens a trace may run for a while after its query was cancelled.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Database {
    /// Finds the traces and the logdir at a path or URL. They are opened when a query names a table that needs them.
    ///
    /// # Errors
    /// [`QueryError::Open`] where there is no trace or logdir.
    pub fn open(root: &str, options: Options) -> Result<Database, QueryError> {
        Self::open_on(root, options, None)
    }

    /// As [`Database::open`], for queries that run on a cluster.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_on(root: &str, options: Options, cluster: Option<Arc<dyn Cluster>>) -> Result<Database, QueryError> {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        options.threads.map(|n| threads.worker_threads(n.get()));
        let runtime = threads.enable_all().build()?;
        let sources = Arc::new(Sources::find(root, &runtime)?);
        let context = session_context(options, cluster.as_deref()).map_err(|e| QueryError::from_run(&e))?;
        if let Some(bucket) = &sources.bucket {
            context.register_object_store(&bucket.address, Arc::clone(&bucket.store));
        }
        let tables = tables().map_err(|e| QueryError::from_run(&DataFusionError::from(e)))?;
        let mut infos = Vec::new();
        for (mut info, rows) in tables {
            if cluster.is_some() {
                info.schema = schema::without_views(&info.schema);
            }
            infos.push(info.clone());
            let table = SourceTable { info, rows: Arc::new(rows), sources: Arc::clone(&sources) };
            context.register_table(table.info.name, Arc::new(table)).map_err(|e| QueryError::from_run(&e))?;
        }
        Ok(Database {
            context,
            sources,
            tables: infos,
            cluster,
            runtime: Some(runtime),
            cancel_request: Arc::default(),
        })
    }

    /// The tables.
    #[must_use]
    pub fn tables(&self) -> &[TableInfo] {
        &self.tables
    }

    /// The labels of the traces: the values of the column `trace`.
    pub fn traces(&self) -> impl ExactSizeIterator<Item = &str> {
        self.sources.traces.iter().map(|source| source.label.as_str())
    }

    /// Warnings for the user since the last call: damage, traces that are left out.
    #[must_use]
    pub fn take_warnings(&self) -> Vec<String> {
        self.sources.take_warnings()
    }

    /// A handle by which another thread cancels queries.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        Canceller(Arc::clone(&self.cancel_request))
    }

    /// Runs a query and writes its rows as they come, at most `limit`; returns their number. Only queries (and
    /// `explain`, `describe`, `show tables`) are allowed, and only on these tables: nothing can be created or changed,
    /// and no other file read.
    ///
    /// # Errors
    /// [`QueryError::Sql`] where the text is no query or names something unknown; the other variants while it runs.
    pub fn query(
        &self,
        sql: &str,
        limit: Option<usize>,
        format: Format,
        out: &mut (dyn Write + Send),
    ) -> Result<u64, QueryError> {
        self.run_cancellable(async { write(self.rows(sql, limit).await?, format, out).await })
    }

    /// Runs a query as [`query`](Self::query) does; returns its rows as text, at most `max_rows`.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub fn answer(&self, sql: &str, max_rows: usize) -> Result<QueryResult, QueryError> {
        // One row more than needed shows whether there are more.
        self.run_cancellable(async { collect(self.rows(sql, Some(max_rows.saturating_add(1))).await?, max_rows).await })
    }

    fn run_cancellable<T>(&self, work: impl Future<Output = Result<T, QueryError>>) -> Result<T, QueryError> {
        // The runtime is `None` only after the drop.
        let Some(runtime) = &self.runtime else { return Err(QueryError::Cancelled) };
        runtime.block_on(async {
            let result = {
                let work = pin!(work);
                match select(pin!(self.cancel_request.notified()), work).await {
                    Either::Left(_) => Err(QueryError::Cancelled),
                    Either::Right((result, _)) => result,
                }
            };
            if let Some(cluster) = &self.cluster {
                cluster.release().await;
            }
            result
        })
    }

    async fn rows(&self, sql: &str, limit: Option<usize>) -> Result<SendableRecordBatchStream, QueryError> {
        let plan = self.plan(sql).await?;
        let rows = DataFrame::new(self.context.state(), plan);
        let rows = match limit {
            Some(limit) => rows.limit(0, Some(limit)).map_err(|e| QueryError::from_plan(&e))?,
            None => rows,
        };
        self.execute(rows).await.map_err(|e| QueryError::from_run(&e))
    }

    /// Runs queries that read a table on the cluster, if there is one; runs all other queries in this process.
    async fn execute(&self, rows: DataFrame) -> Result<SendableRecordBatchStream, DataFusionError> {
        let (Some(cluster), true) = (&self.cluster, reads_tables(rows.logical_plan())?) else {
            return rows.execute_stream().await;
        };
        let context = Arc::new(rows.task_ctx());
        cluster.run(rows.create_physical_plan().await?, context).await
    }

    async fn plan(&self, sql: &str) -> Result<LogicalPlan, QueryError> {
        let state = self.context.state();
        let dialect = state.config_options().sql_parser.dialect;
        let statement = state.sql_to_statement(sql, &dialect).map_err(|e| QueryError::from_plan(&e))?;
        let table_names = state.resolve_table_references(&statement).unwrap_or_default();
        let plan = state.statement_to_plan(statement).await.map_err(|error| {
            let names: Vec<&str> = self.tables.iter().map(|table| table.name).collect();
            let unknown = table_names.iter().find(|name| name.schema().is_none() && !names.contains(&name.table()));
            match unknown {
                Some(name) => QueryError::no_table(name.table(), &names),
                None => QueryError::from_plan(&error),
            }
        })?;
        let only_queries = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        let refused = |error: DataFusionError| {
            QueryError::Sql(format!(
                "only queries run here, nothing that makes or changes something ({})",
                error.strip_backtrace()
            ))
        };
        only_queries.verify_plan(&plan).map_err(refused)?;
        if self.cluster.is_some() && matches!(plan, LogicalPlan::Analyze(_)) {
            let text =
                "explain analyze measures what runs in this process, and not a cluster; explain alone shows the plan";
            return Err(QueryError::Sql(text.to_owned()));
        }
        Ok(plan)
    }
}

/// Writes rows as they come; returns their number.
async fn write(
    mut rows: SendableRecordBatchStream,
    format: Format,
    out: &mut (dyn Write + Send),
) -> Result<u64, QueryError> {
    let mut writer = Writer::new(format, rows.schema(), out)?;
    let mut n_rows = 0;
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(|e| QueryError::from_run(&e))?;
        n_rows += batch.num_rows() as u64;
        writer.write(&batch)?;
    }
    writer.finish()?;
    Ok(n_rows)
}

/// Collects the rows as text, at most `max_rows`.
async fn collect(mut rows: SendableRecordBatchStream, max_rows: usize) -> Result<QueryResult, QueryError> {
    let mut answer = QueryResult::with_schema(&rows.schema());
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(|e| QueryError::from_run(&e))?;
        answer.rows.extend(cells(&batch)?);
    }
    answer.has_more = answer.rows.len() > max_rows;
    answer.rows.truncate(max_rows);
    Ok(answer)
}

/// All tables, each with the source of its rows.
fn tables() -> Result<Vec<(TableInfo, RowSource)>, ArrowError> {
    let stored = schema::stored_tables().into_iter().map(|info| (info, RowSource::Stored));
    let derived = derived::tables()?.into_iter().map(|table| (table.info.clone(), RowSource::Derived(table)));
    let logdir_tables = logdir::tables().into_iter().map(|table| (table.info.clone(), RowSource::Logdir(table)));
    Ok(stored.chain(derived).chain(logdir_tables).collect())
}

/// Whether a plan reads rows of a table, other than those of the information schema.
fn reads_tables(plan: &LogicalPlan) -> Result<bool, DataFusionError> {
    let mut reads = false;
    if !matches!(plan, LogicalPlan::Explain(_)) {
        plan.apply_with_subqueries(|node| {
            reads |= match node {
                LogicalPlan::TableScan(scan) => scan.table_name.schema() != Some(INFORMATION_SCHEMA),
                _ => false,
            };
            Ok(if reads { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
    }
    Ok(reads)
}

fn session_context(options: Options, cluster: Option<&dyn Cluster>) -> Result<SessionContext, DataFusionError> {
    let mut config = SessionConfig::new().with_information_schema(true);
    // Filters are evaluated during the scan: the other columns of refused rows are not decoded.
    config.options_mut().execution.parquet.pushdown_filters = true;
    let pool = TrackConsumersPool::new(FairSpillPool::new(options.memory_bytes), N_NAMED_CONSUMERS);
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool)).build_arc()?;
    let state = SessionStateBuilder::new_with_default_features().with_config(config).with_runtime_env(runtime).build();
    let mut state = match cluster {
        Some(cluster) => cluster.prepare(state)?,
        None => state,
    };
    if let Some(threads) = options.threads {
        state.config_mut().options_mut().execution.target_partitions = threads.get();
    }
    Ok(SessionContext::new_with_state(state))
}
