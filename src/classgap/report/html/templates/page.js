"use strict";
(() => {
  const sets = JSON.parse(document.getElementById("data").textContent);
  const dialog = document.querySelector("dialog");
  const content = dialog.querySelector(".content");
  const tip = document.querySelector(".tip");
  let current = 0; // data set of the open class

  // Insert text as text, never as HTML: class names are untrusted.
  const createElement = (name, options = {}, ...children) => {
    const element = document.createElement(name);
    Object.assign(element, options);
    element.append(...children);
    return element;
  };
  // Lines may end between the parts of a name, as in the tables.
  const nameNodes = (name) => name.split(/(?<=[_./:|\\,;+=-])(?=[\p{L}_])|(?<=[a-z])(?=[A-Z])/u)
    .flatMap((part, i) => (i ? [createElement("wbr"), part] : [part]));
  const setOf = (element) => Number(element.closest("[data-set]")?.dataset.set ?? current);

  // Tables: sort by column, search by name.
  const groups = ["easy", "medium", "hard", "gained", "unclear", "unchanged", "regressed", "unseen"];
  const sortText = (cell) => (cell.classList.contains("dot") ? String(groups.indexOf(cell.textContent.trim())) : cell.textContent.trim());
  const parseNumber = (text) => Number.parseFloat(text.replace(/,/g, "").replace("−", "-").replace(/^< /, ""));
  const sortBy = (table, header) => {
    const ascending = header.getAttribute("aria-sort") !== "ascending";
    for (const other of header.parentElement.children) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const byText = header.classList.contains("t");
    const rows = [...table.tBodies[0].rows].map((row) => {
      const text = sortText(row.cells[header.cellIndex]);
      return { row, key: byText ? text : parseNumber(text), empty: text === "–" || (!byText && Number.isNaN(parseNumber(text))) };
    });
    const compare = byText ? new Intl.Collator(undefined, { numeric: true }).compare : (a, b) => a - b;
    // Missing values come last in both directions.
    rows.sort((a, b) => a.empty - b.empty || (a.empty ? 0 : (ascending ? 1 : -1) * compare(a.key, b.key)));
    const sorted = document.createDocumentFragment();
    for (const { row } of rows) sorted.append(row);
    table.tBodies[0].append(sorted);
  };
  for (const tool of document.querySelectorAll(".tool")) {
    const table = tool.querySelector("table");
    const status = tool.querySelector("output");
    for (const header of table.tHead.rows[0].cells) {
      header.querySelector("button").addEventListener("click", () => sortBy(table, header));
    }
    tool.querySelector("input").addEventListener("input", (event) => {
      const query = event.target.value.trim().toLowerCase();
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        row.hidden = !row.cells[0].textContent.toLowerCase().includes(query);
        shown += !row.hidden;
      }
      status.textContent = `${shown.toLocaleString("en")} of ${table.tBodies[0].rows.length.toLocaleString("en")} classes`;
    });
  }
  for (const cell of document.querySelectorAll("td.share")) {
    cell.style.setProperty("--share", `${Number.parseFloat(cell.textContent) || 0}%`);
  }

  // The dialog of one class.
  const renderCommand = (command) => createElement("code", {},
    ...command.split(" ").flatMap((word, i) => [i ? " " : "", createElement("span", { textContent: word })]));
  const renderCauses = (data, index) => {
    const causes = data.causes?.[index] ?? [];
    if (!causes.length) return [];
    const entries = causes.map((cause) => cause.map((i) => data.texts[i])).map(([name, evidence, methods, advice, command]) => createElement("li", {},
      createElement("strong", { textContent: name }), createElement("p", { textContent: evidence }),
      createElement("p", {}, advice, ...(command ? [": ", renderCommand(command)] : ["."])),
      ...(methods ? [createElement("p", { className: "soft", textContent: `Suggested methods: ${methods}` })] : [])));
    return [createElement("h3", { textContent: "Diagnosis" }), createElement("ol", { className: "causes" }, ...entries)];
  };
  const renderBudget = (data, index) => {
    const budget = data.budgets?.[index];
    if (!budget) return [];
    const [errors, unexplained, lowerBound, ...changes] = budget;
    const format = (v) => v.toLocaleString("en");
    const percent = (v) => `${errors ? Math.round((100 * v) / errors) : 0} %`;
    const cell = (text, under) => createElement("td", {}, text,
      ...(under ? [createElement("br"), createElement("small", { className: "soft", textContent: under })] : []));
    const header = (text, scope) => createElement("th", { textContent: text, scope });
    const rows = changes.map((share, i) => {
      const name = header(["Labels", "Decision", "Head", "Representation"][i], "row");
      if (!share) return createElement("tr", {}, name, cell("not tried"), cell("–"), cell("–"));
      const [removed, low, high, added, elsewhere] = share;
      const count = (i === 2 && lowerBound ? "at least " : "") + format(removed);
      return createElement("tr", {}, name, cell(count), cell(percent(removed), `${low} to ${high}`),
        cell(format(added), elsewhere ? `+ ${format(elsewhere)} elsewhere` : ""));
    });
    if (unexplained) {
      rows.push(createElement("tr", {}, header("Unexplained", "row"), cell(format(unexplained)), cell(percent(unexplained)), cell("–")));
    }
    const headers = ["Change", "Removes", "Fraction", "Adds"].map((text) => header(text, "col"));
    const note = `Of ${format(errors)} ${errors === 1 ? "error" : "errors"}; each counts once. Fractions have their ${data.level} CI. “Adds” counts correct predictions that the change would break, of this class and elsewhere.`;
    return [createElement("h3", { textContent: "What would fix the errors" }),
      createElement("table", {}, createElement("caption", { textContent: "Errors by the change that would remove them" }),
        createElement("thead", {}, createElement("tr", {}, ...headers)), createElement("tbody", {}, ...rows)),
      createElement("p", { className: "note", textContent: note })];
  };
  const renderSamples = (data, index) => [["doubted", "Doubted labels"], ["confident", "Confidently wrong"]].flatMap(([key, title]) => {
    const [total, numbers] = data[key]?.[index] ?? [0, []];
    if (!total) return [];
    const more = total > numbers.length ? `, and ${(total - numbers.length).toLocaleString("en")} more` : "";
    return [createElement("h3", { textContent: `${title}: test samples` }),
      createElement("p", { className: "samples", textContent: numbers.join(", ") + more })];
  });
  const renderConfusions = (data, index) => {
    const confusions = data.confusions?.[index] ?? [];
    if (!confusions.length) return [];
    const entries = confusions.map(([other, count, rate]) => {
      const button = createElement("button", { type: "button" }, ...nameNodes(data.names[other]));
      button.dataset.class = other;
      const entry = createElement("li", {}, button, createElement("span", { textContent: `${rate} % (${count})` }));
      entry.style.setProperty("--share", `${rate}%`);
      return entry;
    });
    return [createElement("h3", { textContent: "Confused with" }), createElement("ul", { className: "bars" }, ...entries)];
  };
  const renderMargins = (data, index) => {
    const q = data.margins?.[index] ?? []; // quantiles at 0, 5, 10, 25, 50, 75, 90, 95 and 100 %
    if (!q.length) return [];
    const low = Math.min(0, q[0]), width = Math.max(0, q[8]) - low || 1;
    const x = (v) => (100 * (v - low)) / width;
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const format = (v) => String(v).replace("-", "−");
    const summary = `Minimum ${format(q[0])}, 5 % quantile ${format(q[1])}, median ${format(q[4])}, 95 % quantile ${format(q[7])}, maximum ${format(q[8])}.`;
    svg.setAttribute("class", `chart strip ${data.kinds[index]}`);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", summary);
    const line = (from, to, y1, y2, className) => {
      const element = document.createElementNS(svg.namespaceURI, "line");
      for (const [key, v] of Object.entries({ x1: `${x(from)}%`, x2: `${x(to)}%`, y1, y2, class: className })) {
        element.setAttribute(key, v);
      }
      svg.append(element);
    };
    line(0, 0, 2, 32, "zero");
    line(q[1], q[7], 17, 17, "whisker");
    line(q[3], q[5], 17, 17, "band");
    line(q[4], q[4], 17, 17, "dots dot");
    return [createElement("h3", { textContent: "Logit margins" }), svg,
      createElement("p", { className: "note", textContent: `${summary} Thick line: 25 % to 75 %. Samples with a negative margin are misclassified.` })];
  };
  const renderFacts = (data, index) => data.facts.flatMap(([title, rows]) => {
    const pairs = rows.filter(([, texts]) => texts[index])
      .flatMap(([label, texts]) => [createElement("dt", { textContent: label }), createElement("dd", { textContent: texts[index] })]);
    return pairs.length ? [createElement("h3", { textContent: title }), createElement("dl", {}, ...pairs)] : [];
  });
  const open = (set, index) => {
    current = set;
    const data = sets[set];
    const heading = createElement("h2", { tabIndex: -1, id: "opened" }, ...nameNodes(data.names[index]));
    const kind = data.kinds[index];
    content.replaceChildren(heading, createElement("p", { className: `badge ${kind}`, textContent: data.kind_names[kind] ?? kind }),
      ...renderCauses(data, index), ...renderBudget(data, index), ...renderSamples(data, index), ...renderConfusions(data, index), ...renderFacts(data, index), ...renderMargins(data, index));
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    heading.focus();
  };
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  document.addEventListener("click", (event) => {
    if (event.target === dialog) return dialog.close(); // click on the backdrop
    const target = event.target.closest("[data-class]");
    if (target) return open(setOf(target), Number(target.dataset.class));
    // Anywhere else in a row opens its class, unless the click ends a selection of text.
    const own = event.target.closest("main tbody tr")?.querySelector("th [data-class]");
    if (own && getSelection().isCollapsed) {
      own.focus({ preventScroll: true }); // closing the dialog returns the focus
      return open(setOf(own), Number(own.dataset.class));
    }
    const dot = nearest(event);
    if (dot) open(setOf(event.target), dot.index);
  });

  // A chart draws thousands of dots as one path, so find the nearest one by its coordinates.
  const dotsOf = new WeakMap();
  const readDots = (svg) => {
    const paths = svg.querySelectorAll("path.dots");
    const wide = svg.classList.contains("for-narrow") ? svg.previousElementSibling : svg; // has the classes of the dots
    return [...wide.querySelectorAll("path[data-classes]")].flatMap((named, k) => {
      const points = paths[k].getAttribute("d").match(/[\d.-]+ [\d.-]+/g).map((pair) => pair.split(" ").map(Number));
      return named.dataset.classes.split(",").map((index, i) => ({ index: Number(index), x: points[i][0], y: points[i][1] }));
    });
  };
  function nearest(event) {
    const svg = event.target.closest?.("svg.chart");
    if (!svg || svg.closest("dialog")) return null;
    if (!dotsOf.has(svg)) dotsOf.set(svg, readDots(svg));
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    let best = null, least = 14 ** 2;
    for (const dot of dotsOf.get(svg)) {
      const distance = (dot.x - at.x) ** 2 + (dot.y - at.y) ** 2;
      if (distance < least) { best = dot; least = distance; }
    }
    return best;
  }
  document.addEventListener("pointermove", (event) => {
    const dot = nearest(event);
    tip.hidden = !dot;
    if (event.target.closest?.("svg.chart")) event.target.closest("svg.chart").style.cursor = dot ? "pointer" : "";
    if (!dot) return;
    tip.textContent = sets[setOf(event.target)].names[dot.index];
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${event.clientY + 16}px`;
  });
})();
