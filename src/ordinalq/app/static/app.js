"use strict";
(function () {
  function all(selector, root) { return Array.from((root || document).querySelectorAll(selector)); }

  // Running job: poll its progress, and reload when it has ended.
  const working = document.querySelector("[data-job]");
  if (working) {
    const bar = working.querySelector("progress");
    const text = working.querySelector("[data-text]");
    const clock = working.querySelector("[data-seconds]");
    const ask = function () {
      fetch(working.dataset.job, { headers: { Accept: "application/json" } }).then(function (answer) {
        return answer.json();
      }).then(function (job) {
        if (job.state !== "running") { window.location.replace(working.dataset.next); return; }
        if (text.textContent !== job.text) { text.textContent = job.text; }
        clock.textContent = Math.round(job.seconds) + " s";
        if (job.part === null) { bar.removeAttribute("value"); } else { bar.value = job.part; }
        window.setTimeout(ask, 500);
      }).catch(function () {
        text.textContent = "The program does not respond. It may have been stopped.";
        window.setTimeout(ask, 3000);
      });
    };
    ask();
  }

  // Files are uploaded as soon as they are chosen or dropped.
  all("form[data-upload]").forEach(function (form) {
    const input = form.querySelector("input[type=file]");
    const status = form.querySelector("[data-status]");
    const bar = form.querySelector("progress");
    const button = form.querySelector("button");
    function send(file) {
      const data = new FormData();
      data.append("file", file);
      const request = new XMLHttpRequest();
      request.open("POST", form.action);
      request.responseType = "document";
      bar.hidden = false;
      button.disabled = input.disabled = true;
      status.textContent = "Uploading " + file.name;
      request.upload.addEventListener("progress", function (event) {
        if (event.lengthComputable) { bar.value = event.loaded / event.total; }
      });
      request.addEventListener("load", function () {
        if (request.status < 400) { window.location.assign(request.responseURL); return; }
        const message = request.response && request.response.querySelector("[role=alert]");
        again(message ? message.textContent.trim() : "The file was rejected.");
      });
      request.addEventListener("error", function () { again("The file could not be uploaded."); });
      request.send(data);
    }
    function again(message) {
      bar.hidden = true;
      button.disabled = input.disabled = false;
      status.textContent = message;
    }
    input.addEventListener("change", function () { if (input.files.length) { send(input.files[0]); } });
    form.addEventListener("submit", function (event) {
      event.preventDefault();
      if (input.files.length) { send(input.files[0]); } else { status.textContent = "Choose a file first."; input.focus(); }
    });
    ["dragover", "dragleave", "drop"].forEach(function (kind) {
      form.addEventListener(kind, function (event) {
        event.preventDefault();
        form.classList.toggle("over", kind === "dragover");
        if (kind === "drop" && event.dataTransfer.files.length) { send(event.dataTransfer.files[0]); }
      });
    });
  });

  // Only the classes of the chosen target are shown and sent.
  const target = document.querySelector("select[data-target]");
  const by = document.querySelector("select[name=by]");
  const weight = document.querySelector("select[name=weight]");
  function showClasses() {
    all("[data-classes]").forEach(function (part) {
      const chosen = part.dataset.classes === target.value;
      part.hidden = !chosen;
      all("input", part).forEach(function (input) { input.disabled = !chosen; });
    });
    const roles = [["class", target], ["group", by], ["weight", weight]];
    all("tr[data-column]").forEach(function (row) {
      const use = row.querySelector("select");
      const role = row.querySelector("[data-role]");
      const taken = roles.find(function (one) { return one[1].value === row.dataset.column; });
      use.hidden = taken !== undefined;
      role.textContent = taken ? taken[0] : "";
    });
  }
  if (target) {
    [target, by, weight].forEach(function (one) { one.addEventListener("change", showClasses); });
    showClasses();
  }

  // The order of the classes: by buttons, or by dragging.
  all("ol.classes").forEach(function (list) {
    const status = list.parentElement.querySelector("[data-status-text]");
    function announce(item) {
      const name = item.querySelector(".name").textContent;
      status.textContent = name + " is now number " + (Array.from(list.children).indexOf(item) + 1) + " of " + list.children.length;
    }
    list.addEventListener("click", function (event) {
      const button = event.target.closest("button[data-move]");
      if (!button) { return; }
      const item = button.closest("li");
      if (button.dataset.move === "up" && item.previousElementSibling) { list.insertBefore(item, item.previousElementSibling); }
      if (button.dataset.move === "down" && item.nextElementSibling) { list.insertBefore(item.nextElementSibling, item); }
      button.focus();
      announce(item);
    });
    let dragged = null;
    list.addEventListener("dragstart", function (event) {
      dragged = event.target.closest("li");
      dragged.classList.add("dragged");
      event.dataTransfer.effectAllowed = "move";
    });
    list.addEventListener("dragover", function (event) {
      const over = event.target.closest("li");
      if (!dragged || !over || over === dragged) { return; }
      event.preventDefault();
      const box = over.getBoundingClientRect();
      list.insertBefore(dragged, event.clientY < box.top + box.height / 2 ? over : over.nextElementSibling);
    });
    list.addEventListener("drop", function (event) { event.preventDefault(); });
    list.addEventListener("dragend", function () {
      if (dragged) { dragged.classList.remove("dragged"); announce(dragged); }
      dragged = null;
    });
  });

  // Scroll to a message, also if the URL has an anchor.
  const alert = document.querySelector("main [role=alert]");
  if (alert) {
    window.addEventListener("load", function () {
      window.setTimeout(function () { alert.scrollIntoView({ block: "center" }); }, 50);
    });
  }

  // Open all details for printing.
  window.addEventListener("beforeprint", function () {
    all("details").forEach(function (one) { if (!one.classList.contains("command")) { one.open = true; } });
  });
})();
