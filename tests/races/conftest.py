from tests.support.engines import engine, engine_table

__all__ = ["engine", "engine_table"]
