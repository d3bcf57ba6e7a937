"""A read model and its events as files for other programs: CSV, or Parquet with types.

`contents` says what is exported, `csv_files` and `parquet_files` write it, `folder` puts the whole in place.
"""
