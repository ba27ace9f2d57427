from .tune_server import tune as tune
