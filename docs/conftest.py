"""What of this folder is no page with examples to run: settings and what a build has made."""

collect_ignore = ["conf.py", "_build", "_ext", "api/generated", "gallery"]
