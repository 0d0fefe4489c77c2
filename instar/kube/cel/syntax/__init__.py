"""CEL syntax: lexer, parser, macros, syntax tree and compile errors."""
