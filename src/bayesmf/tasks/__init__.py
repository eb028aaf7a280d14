"""Work that can be stopped and goes on: records in a folder, and who does the tasks."""
