"use strict";
(function () {
  const given = JSON.parse(document.getElementById("plots").textContent);
  const plots = given.plots;
  const all = (selector, root) => Array.from((root || document).querySelectorAll(selector));
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 640px)");
  let printing = false;

  // colours: names of the figures -> those of the theme ------------------------------------------
  const KEYS = new Set(["color", "fillcolor", "linecolor", "gridcolor", "zerolinecolor", "bgcolor", "bordercolor"]);

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const colours = {};
    for (const name of ["paper", "ink", "muted", "line", "bound", ...Array.from({ length: 14 }, (_, i) => "p" + i)]) {
      colours[name.replace(/^p(?=\d)/, "")] = style.getPropertyValue("--" + name).trim();
    }
    return colours;
  }

  function colour(token, colours) {
    const [name, opacity] = token.slice(1).split("/");
    const full = colours[name] || "#888888";
    if (opacity === undefined || !/^#[0-9a-f]{6}$/i.test(full)) { return full; }
    const [r, g, b] = [1, 3, 5].map((i) => parseInt(full.slice(i, i + 2), 16));
    return `rgba(${r},${g},${b},${opacity})`;
  }

  function painted(value, colours, key) {
    if (typeof value === "string") {
      return KEYS.has(key) && value.startsWith("@") ? colour(value, colours) : value;
    }
    if (Array.isArray(value)) { return KEYS.has(key) ? value.map((v) => painted(v, colours, key)) : value.map((v) => painted(v, colours)); }
    if (value && typeof value === "object") {
      const copy = {};
      for (const name of Object.keys(value)) { copy[name] = painted(value[name], colours, name); }
      return copy;
    }
    return value;
  }

  // texts of axes, in lines that leave room for the plot on a narrow screen -----------------------
  function wrapped(text, letters) {
    const lines = [""];
    for (const word of text.trim().split(/(?<!=) (?!=)/)) {  // "servers = 2" stays whole
      const line = (lines[lines.length - 1] + " " + word).trim();
      if (line.length <= letters || !lines[lines.length - 1]) { lines[lines.length - 1] = line; } else { lines.push(word); }
    }
    return lines.join("<br>");
  }

  function narrowed(layout, width) {
    const { xaxis, yaxis } = layout;
    // 8 px a letter; beside the labels of rows, less than half of the width
    const letters = Math.max(12, Math.floor(width / (yaxis.ticktext ? 18 : 8)));
    if (xaxis.title) { xaxis.title.text = wrapped(xaxis.title.text, letters); }
    if (!yaxis.ticktext) { return; }
    yaxis.ticktext = yaxis.ticktext.map((text) => wrapped(text, letters) + " ");
    const lines = Math.max(...yaxis.ticktext.map((text) => text.split("<br>").length));
    layout.height *= Math.max(1, lines / 2);  // a row has the height of two lines
  }

  function draw(place) {
    const variants = plots[place.dataset.plot];
    const chosen = variants[Number(place.dataset.variant || 0)];
    const colours = theme();
    const figure = painted(chosen.figure, colours);
    const layout = figure.layout;
    layout.paper_bgcolor = "rgba(0,0,0,0)";
    layout.plot_bgcolor = "rgba(0,0,0,0)";
    layout.autosize = true;
    if (narrow.matches && !printing) { narrowed(layout, place.clientWidth); }
    if (printing) { layout.height = Math.min(layout.height, 540); }  // what a page holds
    layout.font = { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: colours.ink };
    layout.hoverlabel = { bgcolor: colours.paper, bordercolor: colours.line, font: { color: colours.ink, size: 13 }, align: "left", namelength: -1 };
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: colours.muted, activecolor: colours.ink };
    for (const name of Object.keys(layout).filter((n) => /^[xy]axis/.test(n))) {
      const axis = layout[name];
      axis.gridcolor = axis.gridcolor || colours.line;
      axis.linecolor = colours.line;
      axis.tickfont = { color: colours.ink, size: 12.5 };
      if (axis.title) { axis.title.font = { color: colours.muted, size: 12.5 }; axis.title.standoff = 10; }
    }
    place.style.height = layout.height + "px";
    const config = {
      responsive: true, displaylogo: false, displayModeBar: printing ? false : "hover",
      modeBarButtons: [["toImage", "resetScale2d"]],
      toImageButtonOptions: { format: "svg", filename: "schedgym-" + place.dataset.plot },
    };
    window.Plotly.react(place, figure.data, layout, config);
    place.dataset.drawn = "1";
    const note = document.getElementById("note-" + place.dataset.plot);
    if (note) { note.textContent = chosen.note || ""; }
  }

  function drawAll(root, again) {
    for (const place of all(".plot", root)) {
      if (again || !place.dataset.drawn) { draw(place); }
    }
  }

  // tabs ------------------------------------------------------------------------------------------
  const tabs = all('[role="tab"]');
  const panels = all("section.panel");

  function open(tab, focus) {
    for (const other of tabs) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", chosen ? "true" : "false");
      other.tabIndex = chosen ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).classList.toggle("open", chosen);
    }
    if (focus) { tab.focus(); }
    tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    drawAll(document.getElementById(tab.getAttribute("aria-controls")));
  }

  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => {
      open(tab);
      history.replaceState(null, "", "#" + tab.dataset.name);
    });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (step === undefined) { return; }
      event.preventDefault();
      open(tabs[(step + tabs.length) % tabs.length], true);
    });
  });

  function named() {
    const name = decodeURIComponent(location.hash.slice(1));
    return tabs.find((tab) => tab.dataset.name === name);
  }
  window.addEventListener("hashchange", () => { const tab = named(); if (tab) { open(tab); } });

  // choices: another variant of a plot, another setting of a table ----------------------------------
  for (const select of all("select[data-plot]")) {
    select.addEventListener("change", () => {
      const place = document.querySelector('.plot[data-plot="' + select.dataset.plot + '"]');
      place.dataset.variant = select.value;
      draw(place);
    });
  }
  for (const select of all("select[data-table]")) {
    const filter = () => {
      document.getElementById(select.dataset.table).classList.toggle("one", select.value !== "all");
      for (const row of all("#" + select.dataset.table + " tbody tr")) {
        row.hidden = select.value !== "all" && row.dataset.setting !== select.value;
      }
    };
    select.addEventListener("change", () => {
      filter();
      const label = select.selectedOptions[0].textContent;
      for (const other of all("select[data-plot]", select.closest("section"))) {
        const same = Array.from(other.options).find((option) => option.textContent === label);
        if (same && other.value !== same.value) {
          other.value = same.value;
          other.dispatchEvent(new Event("change"));
        }
      }
    });
    filter();
  }

  // tables: a click on a heading sorts ---------------------------------------------------------------
  for (const button of all("th button")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const table = head.closest("table");
      const column = Array.from(head.parentNode.children).indexOf(head);
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of all("th[aria-sort]", table)) { other.removeAttribute("aria-sort"); }
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.children[column].dataset.value;
      const compare = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === "" || y === "") { return (x === "") - (y === ""); }
        const [p, q] = [Number(x), Number(y)];
        const order = Number.isNaN(p) || Number.isNaN(q) ? x.localeCompare(y) : p - q;
        return down ? -order : order;
      };
      const body = table.tBodies[0];
      Array.from(body.rows).sort(compare).forEach((row) => body.appendChild(row));
    });
  }

  // on a narrow screen each winner is a list: its cells say what they are
  for (const cell of all(".summary tbody td")) {
    cell.dataset.label = cell.closest("table").tHead.rows[0].cells[cell.cellIndex].textContent;
  }

  // tooltips -------------------------------------------------------------------------------------------
  const tip = document.getElementById("tip");

  function show(element) {
    tip.textContent = element.dataset.tip;
    tip.classList.add("on");
    element.setAttribute("aria-describedby", "tip");
    const at = element.getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, at.left + at.width / 2 - size.width / 2), window.innerWidth - size.width - 8);
    const above = at.top - size.height - 8;
    tip.style.left = left + "px";
    tip.style.top = (above > 4 ? above : at.bottom + 8) + "px";
  }

  function hide() {
    tip.classList.remove("on");
    for (const element of all('[aria-describedby="tip"]')) { element.removeAttribute("aria-describedby"); }
  }
  const tipped = (event) => event.target.closest && event.target.closest("[data-tip]");
  document.addEventListener("mouseover", (event) => { const element = tipped(event); if (element) { show(element); } else { hide(); } });
  document.addEventListener("focusin", (event) => { const element = tipped(event); if (element) { show(element); } else { hide(); } });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") { hide(); } });
  document.addEventListener("scroll", hide, true);

  // themes and paper -------------------------------------------------------------------------------------
  function redraw() {
    for (const place of all(".plot[data-drawn]")) {
      // what is hidden has no size: it is drawn again when its tab is opened
      if (place.offsetParent === null) { delete place.dataset.drawn; } else { draw(place); }
    }
  }
  for (const look of [dark, narrow]) { look.addEventListener("change", () => { if (!printing) { redraw(); } }); }

  function paper(on) {
    if (printing === on) { return; }
    printing = on;
    document.documentElement.classList.toggle("printing", on);
    if (on) { drawAll(document, true); } else { redraw(); }
  }
  window.matchMedia("print").addEventListener("change", (event) => paper(event.matches));
  window.addEventListener("beforeprint", () => paper(true));
  window.addEventListener("afterprint", () => paper(false));

  document.documentElement.classList.add("js");
  open(named() || tabs[0]);
  document.documentElement.dataset.ready = "1";
})();
