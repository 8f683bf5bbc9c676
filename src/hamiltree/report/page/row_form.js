// The form of one row: a field per column, with a slider for numbers. An empty field is a missing cell.

/**
 * Fields for a row into `form` and, of columns that no tree asks about, into `rest`. Returns
 * {values, numbers, set, complete, shown}; `changed` is called when the reader changes a field.
 */
function rowForm(prefix, data, form, rest, changed) {
  const values = data.inputs.map((input) => input.start);
  const fields = data.inputs.map((input, i) => makeField(input, `${prefix}-${i}`, (value) => {
    values[i] = value;
    changed();
  }));
  fields.forEach((field, i) => (data.inputs[i].asked ? form : rest).append(field.box));

  /** One number per used column, in the user's units; NaN where it is missing. */
  function numbers() {
    const row = new Array(data.columns.length).fill(0);
    data.inputs.forEach((input, i) => {
      for (const { column, category } of input.columns) {
        if (input.kind === "number") row[column] = values[i];
        else if (values[i] === "") row[column] = NaN;
        else if (["ordinal", "category"].includes(input.kind)) row[column] = input.categories.indexOf(values[i]);
        else row[column] = values[i] === category ? 1 : 0;
      }
    });
    return row;
  }

  function set(newValues) {
    newValues.forEach((value, i) => {
      values[i] = value;
      fields[i].write(value);
    });
  }

  const complete = () => data.inputs.every((input, i) => !input.required || !isMissing(values[i]));
  const shown = (i) => cellText(data.inputs[i], values[i]);
  const differ = (which) => fields.forEach((field, i) => field.box.classList.toggle("differs", which.includes(i)));
  return { values, numbers, set, complete, shown, differ };
}

const isMissing = (value) => value === "" || Number.isNaN(value) || value === "(missing)";

/** The text of a cell, with its unit. */
function cellText(input, value) {
  if (isMissing(value)) return "missing";
  return input.kind === "number" ? withUnit(String(Number(value.toPrecision(6))), input.unit) : value;
}

function makeField(input, id, change) {
  const label = element("label", { for: id }, ...breakable(input.name));
  if (input.unit) label.append(element("span", { class: "unit" }, ` (${input.unit})`));
  const hint = element("small", { id: `${id}-hint` });
  const make = input.kind === "number" ? numberField : choiceField;
  return make(input, id, label, hint, change);
}

function numberField(input, id, label, hint, change) {
  const field = element("input", {
    id, type: "number", step: "any", placeholder: "missing", "aria-describedby": hint.id });
  const slider = element("input", {
    id: `${id}-slider`, type: "range", min: input.from, max: input.to, step: input.step,
    "aria-label": `${input.name}, slider` });
  const range = withUnit(`${input.lowText} to ${input.highText}`, input.unit);

  function say(value) {
    const outside = !Number.isNaN(value) && !(value >= input.low && value <= input.high);
    hint.textContent = outside ? `outside the training range ${range}` : range;
    if (Number.isNaN(value)) {
      hint.textContent = input.required ? "needed: type a number"
        : input.missing ? "missing" : "missing, as in no training row";
    }
    hint.classList.toggle("outside", outside || (Number.isNaN(value) && input.required));
    slider.classList.toggle("empty", Number.isNaN(value));
    slider.setAttribute("aria-valuetext", cellText(input, value));
  }

  function moveSlider(value) {
    slider.value = Number.isNaN(value) ? (input.from + input.to) / 2 : value;
  }

  function write(value) {
    field.value = Number.isNaN(value) ? "" : String(value);
    moveSlider(value);
    say(value);
  }

  field.addEventListener("input", () => {
    const value = Number.parseFloat(field.value);
    moveSlider(value);
    say(value);
    change(value);
  });
  slider.addEventListener("input", () => {
    const value = Number(Number(slider.value).toPrecision(12));
    field.value = String(value);
    say(value);
    change(value);
  });
  write(input.start);
  return { box: element("div", { class: "field" }, label, field, slider, hint), write };
}

function choiceField(input, id, label, hint, change) {
  const options = input.categories.map((category) =>
    element("option", { value: category }, category === "(missing)" ? "missing" : category));
  if (!input.categories.includes("(missing)") && !input.required) {
    options.push(element("option", { value: "" }, "missing"));
  }
  const field = element("select", { id, "aria-describedby": hint.id }, ...options);

  function write(value) {
    field.value = value;
    hint.textContent = value === "" && !input.missing ? "missing, as in no training row" : "";
  }

  field.addEventListener("input", () => {
    write(field.value);
    change(field.value);
  });
  write(input.start);
  return { box: element("div", { class: "field" }, label, field, hint), write };
}
