use super::*;

/// Ends a script, turns the following text around, ends a line of a script.
const HOSTILE: &str = "</script><b>\u{202e}name\u{2028}";

#[test]
fn names_stay_text_in_tables_titles_and_numbers() {
    let mut page = Page::new(HOSTILE.into());
    page.section("names", "Names", table(&["name"], &[], [vec![HOSTILE.to_owned()]]));
    page.episode(json!({ "name": HOSTILE }));

    let page = page.render(None);

    let scripts = |text: &str| text.matches("</script>").count();
    let plain = Page::new(String::new()).render(None);
    assert_eq!(scripts(&page), scripts(&plain));
    assert!(!page.contains("<b>") && !page.contains('\u{202e}'));
    assert!(page.contains("&lt;/script&gt;&lt;b&gt;\\u{202e}name"));
    let (_, data) = page.split_once("id=\"data\">").expect("it has data");
    let (data, _) = data.split_once("</script>").expect("it ends");
    let data: Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(data["episodes"][0]["name"], HOSTILE);
}
