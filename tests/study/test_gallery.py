"""The page with all figures: in the paper's order, nothing beside it, no name twice."""

import re
from html.parser import HTMLParser

from bayesmf.study import tables
from bayesmf.study.figures.inputs import draw_priors
from bayesmf.study.gallery import write_gallery
from bayesmf.study.published import Published
from tests.study.test_study import cell

STUDY = Published(5, 1.05, 0.1, 1.05, 0.9, 1.2)


def test_a_page_has_all_figures_in_order(tmp_path):
    drawn = draw_priors(tmp_path / "figures")
    again = tmp_path / "figures/paper/noise_GDSC_sameK.svg"
    again.parent.mkdir()
    again.write_text(drawn[0].read_text())
    met = tables.agreement_table([cell(study=STUDY), cell("GEE", (9.0, 9.1), study=STUDY)])
    text = write_gallery(tmp_path / "figures.html", [again, *drawn], met).read_text()
    assert text.index("<figcaption>priors<") < text.index("<figcaption>noise GDSC the same K for")
    assert text.count("<svg") == 2 and "<?xml" not in text and ".png" not in text
    assert not re.findall(r'(?:src|href)="(?!#)(?!http://www.w3)[^"]*"', text)
    names = re.findall(r'\bid="([^"]*)"', text)
    assert len(set(names)) == len(names)
    used = re.findall(r'(?:href="#|url\(#)([^")]*)', text)
    assert used and set(used) <= set(names)
    assert "<td>cross_validation</td><td>GDSC</td><td>2</td><td>1</td><td>0.5</td>" in text
    HTMLParser().feed(text)


def test_nothing_to_compare_is_said(tmp_path):
    text = write_gallery(tmp_path / "a.html", [], tables.agreement_table([cell()])).read_text()
    assert "No published number" in text


def test_agreement_is_counted_by_experiment_and_in_all():
    far = cell("GEE", (9.0, 9.1), study=STUDY)
    apart, other = cell("GGGW", (9.0, 9.1), study=STUDY), far._replace(protocol="sound")
    noise = cell(study=STUDY, experiment="noise", setting=1.0)
    found = [cell(study=STUDY), far, apart, noise, other]
    head, rows = tables.agreement_table(found)
    assert [row[:4] for row in rows] == [
        ("cross_validation", "GDSC", 2, 1), ("noise", "GDSC", 1, 1), ("all", "", 3, 2),
    ]  # fmt: skip
    assert rows[0][head.index("outside")] == 1 and rows[0][-1] == 1
