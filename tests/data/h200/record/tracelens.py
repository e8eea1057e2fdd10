"""Writes tracelens.json: AMD's TraceLens (github.com/AMD-AGI/TraceLens, 0.7) on the recordings: kernel time by the category
of the op that launched, in microseconds.

    PYTHONPATH=TraceLens python3 tracelens.py
"""

import json
import warnings
from pathlib import Path

from TraceLens import TreePerfAnalyzer

warnings.filterwarnings("ignore")
HERE = Path(__file__).parent.parent
found = {}
for name in ["gpt", "conv", "compiled"]:
    analyzer = TreePerfAnalyzer.from_file(profile_filepath=str(HERE / f"{name}.trace.json.gz"))
    rows = analyzer.get_df_kernel_launchers_summary_by_category(analyzer.get_df_kernel_launchers())
    found[name] = {row["op category"]: row["total_direct_kernel_time_ms"] * 1e3 for _, row in rows.iterrows()}
(HERE / "tracelens.json").write_text(json.dumps(found, indent=1) + "\n")
