"""A search over training settings that is resumable, parallel, and judged on validation samples."""

from classgap.remedies.search.config import SearchConfig
from classgap.remedies.search.loop import search
from classgap.remedies.search.records import SearchProgress, SearchResult, TrialRecord
from classgap.remedies.search.trained import fix_by_training

__all__ = ["SearchConfig", "SearchProgress", "SearchResult", "TrialRecord", "fix_by_training", "search"]
