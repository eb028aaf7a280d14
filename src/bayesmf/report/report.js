"use strict";
(() => {
  const get = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const data = JSON.parse(get("report-data").textContent);

  /* --- Light and dark ------------------------------------------------------------------------ */

  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const sayTheme = () => get("theme").setAttribute("aria-pressed", String(isDark()));
  get("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    sayTheme();
  });
  system.addEventListener("change", sayTheme);
  sayTheme();

  /* --- Tables that sort ---------------------------------------------------------------------- */

  function sortBy(head) {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const numeric = head.dataset.sort === "number";
    const value = (row) => row.cells[head.cellIndex].dataset.value;
    const compare = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      return (up ? 1 : -1) * (numeric ? x - y : x.localeCompare(y));
    };
    const body = head.closest("table").tBodies[0];
    body.append(...[...body.rows].sort(compare));
  }
  for (const button of all("th[data-sort] button")) {
    button.addEventListener("click", () => sortBy(button.parentElement));
  }

  for (const more of all(".more")) {
    const table = more.previousElementSibling.querySelector("table");
    const [every, fewer] = [more.textContent, "Show fewer"];
    const fold = (folded) => {
      table.classList.toggle("folded", folded);
      more.textContent = folded ? every : fewer;
    };
    more.hidden = false;
    more.addEventListener("click", () => fold(!table.classList.contains("folded")));
    fold(true);
  }

  /* --- Pictures of matrices ------------------------------------------------------------------ */

  const RAMPS = {
    values: [[24, 32, 84], [34, 84, 138], [54, 142, 150], [142, 190, 132], [248, 234, 158]],
    uncertainty: [[36, 22, 66], [98, 38, 108], [168, 60, 98], [226, 116, 66], [253, 210, 130]],
  };
  const MISSING = [150, 150, 150];

  function blend(ramp, share) {
    const place = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
    const left = Math.min(Math.floor(place), ramp.length - 2);
    return ramp[left].map((from, i) => from + (ramp[left + 1][i] - from) * (place - left));
  }

  function paint(canvas, colour) {
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    for (let i = 0; i < canvas.height; i += 1) {
      for (let j = 0; j < canvas.width; j += 1) {
        const found = colour(i, j);
        if (found) image.data.set([...found, 255], 4 * (i * canvas.width + j));
      }
    }
    context.putImageData(image, 0, 0);
  }

  const known = (i, j) => Boolean(data.observed) && data.observed[i][j] === "1";
  if (get("pattern")) paint(get("pattern"), (i, j) => known(i, j) && [75, 127, 149]);

  /* --- The map of all cells ------------------------------------------------------------------ */

  const map = get("heatmap");
  if (map) drawMap();

  function drawMap() {
    const [rows, cols] = [data.rows.length, data.cols.length];
    const plot = map.closest(".plot");
    const cursor = plot.querySelector(".cursor");
    const show = (x) => (x === null ? "not known" : String(Number(x.toPrecision(4))));
    let chosen = null;

    function number(key, i, j) {
      if (key === "uncertainty") return data.std[i][j];
      return data.values && known(i, j) ? data.values[i][j] : data.mean[i][j];
    }

    function choose(key) {
      const layer = data.layers[key];
      const ramp = RAMPS[key === "uncertainty" ? key : "values"];
      paint(map, (i, j) => {
        if (key === "observed" && !known(i, j)) return null;
        const x = number(key, i, j);
        return x === null ? MISSING : blend(ramp, (x - layer.low) / (layer.high - layer.low));
      });
      paint(get("colours"), (i, j) => blend(ramp, j / 255));
      const ends = [layer.low, (layer.low + layer.high) / 2, layer.high].map(show);
      if (layer.cut[0]) ends[0] = `${ends[0]} or less`;
      if (layer.cut[1]) ends[2] = `${ends[2]} or more`;
      all(".ends span").forEach((span, i) => { span.textContent = ends[i]; });
      get("layer-about").textContent = layer.about;
      map.setAttribute("aria-label",
        `${layer.name}: map of ${rows} rows and ${cols} columns. ${layer.about} ` +
        `Colours go from ${ends[0]}, dark, to ${ends[2]}, bright.`);
    }

    function describe(i, j) {
      const spread = data.std ? ` ± ${show(data.std[i][j])}` : "";
      const model = `${show(data.mean[i][j])}${spread}`;
      const place = `${data.rows[i]}, ${data.cols[j]}: `;
      if (!data.observed) return `${place}${model}.`;
      if (!known(i, j)) return `${place}${model}, predicted (not observed).`;
      if (!data.values) return `${place}${model}, observed.`;
      return `${place}${show(data.values[i][j])}, observed. The model says ${model}.`;
    }

    function point(i, j) {
      i = Math.min(Math.max(i, 0), rows - 1);
      j = Math.min(Math.max(j, 0), cols - 1);
      if (chosen && chosen[0] === i && chosen[1] === j) return;
      chosen = [i, j];
      cursor.hidden = false;
      cursor.style.top = `${(100 * i) / rows}%`;
      cursor.style.left = `${(100 * j) / cols}%`;
      cursor.style.height = `${100 / rows}%`;
      cursor.style.width = `${100 / cols}%`;
      get("cell").textContent = describe(i, j);
    }

    const under = (event) => point(
      Math.floor((event.offsetY / map.clientHeight) * rows),
      Math.floor((event.offsetX / map.clientWidth) * cols),
    );
    map.addEventListener("pointermove", under);
    map.addEventListener("pointerdown", under);
    map.addEventListener("focus", () => chosen || point(0, 0));
    map.addEventListener("keydown", (event) => {
      const [i, j] = chosen || [0, 0];
      const target = {
        ArrowUp: [i - 1, j], ArrowDown: [i + 1, j], ArrowLeft: [i, j - 1], ArrowRight: [i, j + 1],
        Home: [i, 0], End: [i, cols - 1],
      }[event.key];
      if (!target || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      point(...target);
    });
    for (const choice of all("input[name=layer]")) {
      choice.addEventListener("change", () => choose(choice.value));
    }
    choose((all("input[name=layer]").find((input) => input.checked) || { value: "values" }).value);
    new ResizeObserver(() => layOut(plot, rows, cols)).observe(plot.parentElement);
  }

  /* The size of the map, and as many labels beside it as have room. */
  function layOut(plot, rows, cols) {
    const [side, field, foot] = plot.children;
    const narrow = plot.clientWidth < 480;
    const longest = (labels) => Math.max(...labels.map((label) => label.length));
    const [wide, high] = [Math.min(longest(data.rows), narrow ? 11 : 17),
      Math.min(longest(data.cols), narrow ? 12 : 16)];
    side.style.width = `${wide + 1}ch`;
    foot.style.height = `${high + 1}ch`;
    const room = plot.clientWidth - side.offsetWidth - 8;
    const cell = Math.min(26, room / cols);
    const width = Math.min(room, Math.max(cell * cols, 240));
    const height = Math.min(600, Math.max(cell * rows, Math.min(rows * 22, 240)));
    for (const part of [field, foot]) part.style.width = `${width}px`;
    field.style.height = `${height}px`;
    map.classList.toggle("fine", width < cols && height < rows);
    label(side, data.rows, "top", height, wide);
    label(foot, data.cols, "left", width, high);
  }

  /* Start and end of a long label: labels that begin alike differ at their ends. */
  function short(text, most) {
    const end = Math.floor((most - 1) / 2);
    return text.length <= most ? text : `${text.slice(0, most - 1 - end)}…${text.slice(-end)}`;
  }

  function label(box, labels, edge, length, most) {
    const step = Math.ceil((labels.length * 14) / length);
    box.replaceChildren();
    for (let i = 0; i < labels.length; i += step) {
      const span = document.createElement("span");
      span.textContent = short(labels[i], most);
      span.style[edge] = `${(100 * (i + 0.5)) / labels.length}%`;
      box.append(span);
    }
  }

  /* --- Commands ------------------------------------------------------------------------------ */

  for (const box of all(".command")) {
    const [command, button, said] = box.children;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        said.textContent = "Copied.";
      } catch {
        getSelection().selectAllChildren(command);
        said.textContent = "Selected: now copy it with the keyboard.";
      }
    });
  }

  /* --- Where the reader is, and paper --------------------------------------------------------- */

  const links = all("nav a");
  const watch = new IntersectionObserver((seen) => {
    const current = seen.find((entry) => entry.isIntersecting);
    if (!current) return;
    for (const link of links) {
      if (link.hash === `#${current.target.id}`) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  all("main > section").forEach((section) => watch.observe(section));

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])");
    for (const card of folded) card.open = true;
  });
  addEventListener("afterprint", () => { for (const card of folded) card.open = false; });
})();
