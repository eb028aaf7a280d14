"""The pictures of the gallery are drawn when the site is built, by the code that stands above them.

A picture is drawn anew when the page or the package has changed. ``python docs/pictures.py FOLDER``
draws them into a folder, for an engine that has no hooks.
"""

from __future__ import annotations

import hashlib
import re
import sys
import warnings
from pathlib import Path

PAGE = "gallery.md"
ROOT = Path(__file__).parents[1]
PIECE = re.compile(r"^```python\n(.*?)^```|\]\((images/gallery/[\w-]+\.png)\)", re.DOTALL | re.M)


def draw(text: str, folder: Path) -> None:
    """Run the snippets of a page in order, and save the figure of each as the picture below it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    session: dict[str, object] = {}
    folder.mkdir(parents=True, exist_ok=True)
    for code, name in PIECE.findall(text):
        if code:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # runs are short on purpose
                exec(compile(code, PAGE, "exec"), session)
        else:
            plt.gcf().savefig(folder / Path(name).name, dpi=150, metadata={"Software": None})
            plt.close("all")


def pictures(page: Path) -> dict[str, Path]:
    """Pictures of the page by their names in it, drawn if that was not done before."""
    text = page.read_text()
    digest = hashlib.sha256(text.encode())
    for source in sorted((ROOT / "src").rglob("*.py")):
        digest.update(source.read_bytes())
    folder = ROOT / "build" / "gallery" / digest.hexdigest()[:16]
    names = [name for _, name in PIECE.findall(text) if name]
    if not all((folder / Path(name).name).exists() for name in names):
        draw(text, folder)
    return {name: folder / Path(name).name for name in names}


def on_files(files, config):
    """Add the pictures to the files of the site."""
    from mkdocs.structure.files import File

    for name, path in pictures(Path(config.docs_dir, PAGE)).items():
        files.append(File.generated(config, name, content=path.read_bytes()))
    return files


if __name__ == "__main__":
    draw((ROOT / "docs" / PAGE).read_text(), Path(sys.argv[1]))
