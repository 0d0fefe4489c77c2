"""CEL syntax: lexer, parser, macros, syntax tree and compile errors.

``engine.analyse`` calls the parser; the checker works on the tree it returns.
"""
