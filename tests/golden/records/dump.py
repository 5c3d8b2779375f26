"""Prints a database as SQL text: python3 dump.py DATABASE"""
import sqlite3
import sys

database = sqlite3.connect(sys.argv[1])
for pragma in ("application_id", "user_version"):
    print(f"PRAGMA {pragma} = {database.execute('PRAGMA ' + pragma).fetchone()[0]};")
print("\n".join(database.iterdump()))
