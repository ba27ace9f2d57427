"""The jobs as a user asks for them: options, plan, run, verify; logs.

Plain option records come in; work folders, corpora and vocabularies go out.
"""
